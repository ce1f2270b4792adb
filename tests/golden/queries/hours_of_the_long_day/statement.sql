WITH
    toUnixTimestamp64Milli(time) AS epoch_ms,
    epoch_ms + {p3:Int64} + (epoch_ms >= {p4:Int64}) * {p5:Int64} AS wall_ms
SELECT
    toInt32(wall_ms / 3600000) AS c0,
    count() AS c1
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
LIMIT {p6:UInt64} OFFSET {p7:UInt64}

-- p0 = "web_1"
-- p1 = 1761429600000
-- p2 = 1761519600000
-- p3 = 7200000
-- p4 = 1761440400000
-- p5 = -3600000
-- p6 = 1001
-- p7 = 0
