WITH
    toUnixTimestamp64Milli(time) AS epoch_ms,
    epoch_ms + {p3:Int64} AS wall_ms
SELECT
    toInt32((wall_ms + 259200000) / 604800000) AS c0,
    count() AS c1,
    uniqExactIf(visitor_key, visitor_key != 0) AS c2
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot
GROUP BY
    c0
ORDER BY
    c0 ASC NULLS LAST
LIMIT {p4:UInt64} OFFSET {p5:UInt64}

-- p0 = "web_1"
-- p1 = 1757476800000
-- p2 = 1761624000000
-- p3 = -14400000
-- p4 = 10001
-- p5 = 0
