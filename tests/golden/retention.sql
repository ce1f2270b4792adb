SELECT
    cohort AS c0,
    count() AS c1,
    sumForEach(arrayMap(period -> has(returned, period), range({p11:UInt16}))) AS c2
FROM (
    SELECT
        cohort,
        arrayDistinct(arrayMap(
            bucket -> bucket - cohort,
            arrayFilter(
                (bucket, bits, position) -> bitTest(bits, 1)
                    AND position > first_position
                    AND bucket >= cohort,
                buckets,
                steps,
                arrayEnumerate(steps)
            )
        )) AS returned
    FROM (
        SELECT
            *,
            buckets[first_position] AS cohort
        FROM (
            SELECT
                *,
                arrayFirstIndex(bits -> bitTest(bits, 0), steps) AS first_position
            FROM (
                SELECT
                    hits.3 AS steps,
                    hits.4 AS buckets
                FROM (
                    WITH
                        toUnixTimestamp64Milli(time) AS epoch_ms,
                        epoch_ms + {p4:Int64} + (epoch_ms >= {p5:Int64}) * {p6:Int64} + (epoch_ms >= {p7:Int64}) * {p8:Int64} AS wall_ms,
                        toUInt16((
                            event_name = {p10:String} AND
                            NOT is_bot AND
                            toInt32(wall_ms / 86400000) <= {p9:Int64}
                        ) * 1 + (
                            NOT is_bot
                        ) * 2) AS bits
                    SELECT
                        arraySort(groupArray((toUnixTimestamp64Milli(time), id, bits, toInt32(toRelativeMonthNum(toDate32(toInt32(wall_ms / 86400000))))))) AS hits
                    FROM events
                    WHERE
                        website_id = {p0:String} AND
                        time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
                        time >= fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
                        time < fromUnixTimestamp64Milli({p3:Int64}, 'UTC') AND
                        visitor_key != 0 AND
                        bits != 0
                    GROUP BY visitor_key
                    HAVING max(bitTest(bits, 0)) = 1
                )
            )
        )
    )
)
GROUP BY cohort
ORDER BY cohort

-- p0 = "web_1"
-- p1 = 1767225600000
-- p2 = 1767222000000
-- p3 = 1798758000000
-- p4 = 3600000
-- p5 = 1774746000000
-- p6 = 3600000
-- p7 = 1792890000000
-- p8 = -3600000
-- p9 = 20484
-- p10 = "signup"
-- p11 = 12
