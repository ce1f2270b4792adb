WITH
    toUnixTimestamp64Milli(time) AS epoch_ms,
    epoch_ms + {p5:Int64} + (epoch_ms >= {p6:Int64}) * {p7:Int64} AS wall_ms,
    (time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC')) AS in_range,
    (time >= fromUnixTimestamp64Milli({p3:Int64}, 'UTC') AND time < fromUnixTimestamp64Milli({p4:Int64}, 'UTC')) AS in_compared
SELECT
    toInt32(toInt32(wall_ms / 86400000) + if(in_range, 0, {p8:Int32})) AS c0,
    country AS c1,
    countIf(in_range) AS c2,
    uniqExactIf(visitor_key, visitor_key != 0 AND in_range) AS c3,
    countIf(in_compared) AS c4,
    uniqExactIf(visitor_key, visitor_key != 0 AND in_compared) AS c5,
    countIf(in_range) AS c6,
    countIf(in_compared) AS c7
FROM events
WHERE
    website_id = {p0:String} AND
    (in_range OR in_compared) AND
    NOT is_bot
GROUP BY
    c0,
    c1
WITH TOTALS
HAVING
    c6 > 0
ORDER BY
    c0 ASC NULLS LAST,
    c2 DESC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p9:UInt64} OFFSET {p10:UInt64}

-- p0 = "web_1"
-- p1 = 1761429600000
-- p2 = 1761519600000
-- p3 = 1761343200000
-- p4 = 1761429600000
-- p5 = 7200000
-- p6 = 1761440400000
-- p7 = -3600000
-- p8 = 1
-- p9 = 1001
-- p10 = 0
