SELECT
    c0,
    c1,
    c2,
    c3,
    c4,
    c5,
    c6,
    c7,
    c8,
    is_top
FROM (
    SELECT *, row_number() OVER (PARTITION BY is_top ORDER BY c4 DESC NULLS LAST, c0 ASC NULLS LAST, c3 DESC NULLS LAST, c1 ASC NULLS LAST, c2 ASC NULLS LAST) AS position
    FROM (
        WITH
            toUnixTimestamp64Milli(time) AS epoch_ms,
            epoch_ms + {p5:Int64} AS wall_ms,
            (time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC')) AS in_range,
            (time >= fromUnixTimestamp64Milli({p3:Int64}, 'UTC') AND time < fromUnixTimestamp64Milli({p4:Int64}, 'UTC')) AS in_compared,
            (tuple(country, isNull(value + 0), ifNull(value + 0, 0)) IN (
                SELECT tuple(c0, isNull(c1), ifNull(c1, 0))
                FROM (
                    WITH
                        toUnixTimestamp64Milli(time) AS epoch_ms,
                        epoch_ms + {p5:Int64} AS wall_ms
                    SELECT
                        country AS c0,
                        value + 0 AS c1,
                        count() AS c2,
                        uniqExactIf(visitor_key, visitor_key != 0) AS c3
                    FROM events
                    WHERE
                        website_id = {p0:String} AND
                        time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
                        time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
                        NOT is_bot
                    GROUP BY
                        c0,
                        c1
                    ORDER BY
                        c3 DESC NULLS LAST,
                        c2 DESC NULLS LAST,
                        c0 ASC NULLS LAST,
                        c1 ASC NULLS LAST
                    LIMIT {p7:UInt64} OFFSET {p8:UInt64}
                )
            )) AS is_top
        SELECT
            toInt32(toInt32(wall_ms / 86400000) + if(in_range, 0, {p6:Int32})) AS c0,
            if(is_top, country, NULL) AS c1,
            if(is_top, value + 0, NULL) AS c2,
            countIf(in_range) AS c3,
            uniqExactIf(visitor_key, visitor_key != 0 AND in_range) AS c4,
            countIf(in_compared) AS c5,
            uniqExactIf(visitor_key, visitor_key != 0 AND in_compared) AS c6,
            countIf(in_range) AS c7,
            countIf(in_compared) AS c8,
            is_top
        FROM events
        WHERE
            website_id = {p0:String} AND
            (in_range OR in_compared) AND
            NOT is_bot
        GROUP BY
            c0,
            c1,
            c2,
            is_top
        WITH TOTALS
        HAVING
            c7 > 0 AND
            (NOT is_top OR ifNull(c3 > {p9:Float64}, false))
    )
)
WHERE NOT is_top OR (position > {p10:UInt64} AND position <= {p11:UInt64})
ORDER BY is_top DESC, position

-- p0 = "web_1"
-- p1 = 1761264000000
-- p2 = 1761523200000
-- p3 = 1761004800000
-- p4 = 1761264000000
-- p5 = 0
-- p6 = 3
-- p7 = 2
-- p8 = 0
-- p9 = 0.0
-- p10 = 1
-- p11 = 5
