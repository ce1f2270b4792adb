WITH
    intDiv(toUnixTimestamp64Milli(time), 1000) AS epoch_second,
    roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
    epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
SELECT
    count() AS c0
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64}) AND
    startsWith(path, {p8:String}) AND
    position(title, {p9:String}) = 0 AND
    ifNull(value + 0 != {p10:Float64}, true) AND
    is_bot = {p11:Bool} AND
    toUnixTimestamp64Milli(time) >= {p12:Int64}
LIMIT {p13:UInt64} OFFSET {p14:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = true
-- p4 = 20386
-- p5 = 20387
-- p6 = [1761350400]
-- p7 = [0]
-- p8 = "/100%_"
-- p9 = "_"
-- p10 = 19.0
-- p11 = true
-- p12 = 1761476400000
-- p13 = 1001
-- p14 = 0
