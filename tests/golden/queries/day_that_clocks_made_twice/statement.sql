WITH
    intDiv(toUnixTimestamp64Milli(time), 1000) AS epoch_second,
    roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
    epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
SELECT
    toUnixTimestamp64Milli(time) AS c0,
    event_name AS c1,
    count() AS c2
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64}) AND
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
-- p3 = false
-- p4 = 14919
-- p5 = 14919
-- p6 = [1289010600, 1289097060]
-- p7 = [-9000, -12600]
-- p8 = 1001
-- p9 = 0
