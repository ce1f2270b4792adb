WITH
    intDiv(toUnixTimestamp64Milli(time), 1000) AS epoch_second,
    roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
    epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
SELECT
    intDiv(wall_second, 3600) AS c0,
    count() AS c1
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64}) AND
    NOT is_bot
GROUP BY
    c0
ORDER BY
    c0 ASC NULLS LAST
LIMIT {p8:UInt64} OFFSET {p9:UInt64}

-- p0 = "web_1"
-- p1 = 1761429600000
-- p2 = 1761519600000
-- p3 = true
-- p4 = 20387
-- p5 = 20387
-- p6 = [1761429600, 1761440400]
-- p7 = [7200, 3600]
-- p8 = 1001
-- p9 = 0
