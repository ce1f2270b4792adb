SELECT
    cohort AS c0,
    count() AS c1,
    sumForEach(arrayMap(period -> has(returned, period), range({p11:UInt16}))) AS c2
FROM (
    SELECT
        cohort,
        arrayDistinct(arrayMap(
            hit -> toInt32(bitAnd(bitShiftRight(hit, 2), 262143)) - cohort,
            arrayFilter(hit -> bitTest(hit, 1), arraySlice(hits, first_position + 1))
        )) AS returned
    FROM (
        SELECT
            *,
            toInt32(bitAnd(bitShiftRight(hits[first_position], 2), 262143)) AS cohort
        FROM (
            SELECT
                hits,
                arrayFirstIndex(hit -> bitTest(hit, 0), hits) AS first_position
            FROM (
                SELECT
                    *,
                    if(
                        arrayExists(
                            (hit, before) -> hit != before AND bitXor(hit, before) < 1048576,
                            by_time,
                            arrayShiftRight(by_time, 1, toUInt64(0))
                        ),
                        arraySort((hit, id) -> (bitShiftRight(hit, 20), reinterpretAsFixedString(id)), gathered, ids),
                        by_time
                    ) AS hits
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
                        ) * 2) AS bits,
                        toUInt64(toUnixTimestamp64Milli(time)) * 1048576 + toUInt64(toInt32(toRelativeMonthNum(toDate32(toInt32(wall_ms / 86400000))))) * 4 + bits AS hit
                    SELECT
                        arraySort(groupArray(hit)) AS by_time,
                        groupArray(hit) AS gathered,
                        groupArray(reinterpretAsUInt128(id)) AS ids
                    FROM events
                    WHERE
                        website_id = {p0:String} AND
                        time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
                        time >= fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
                        time < fromUnixTimestamp64Milli({p3:Int64}, 'UTC') AND
                        visitor_key != 0 AND
                        bits != 0
                    GROUP BY visitor_key
                    HAVING bitTest(groupBitOr(bits), 0)
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
