WITH
    toUnixTimestamp64Milli(time) AS epoch_ms,
    epoch_ms + {p5:Int64} + (epoch_ms >= {p6:Int64}) * {p7:Int64} AS wall_ms
SELECT
    toUnixTimestamp64Milli(time) AS c0,
    event_name AS c1,
    count() AS c2
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    toInt32(wall_ms / 86400000) BETWEEN {p3:Int64} AND {p4:Int64} AND
    NOT is_bot
GROUP BY
    c0,
    c1
ORDER BY
    c2 DESC NULLS LAST,
    c0 ASC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p8:UInt64} OFFSET {p9:UInt64}

-- p0 = "web_1"
-- p1 = 1289010600000
-- p2 = 1289100600000
-- p3 = 14919
-- p4 = 14919
-- p5 = -9000000
-- p6 = 1289097060000
-- p7 = -3600000
-- p8 = 1001
-- p9 = 0
