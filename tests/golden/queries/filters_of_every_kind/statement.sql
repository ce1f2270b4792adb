SELECT
    count() AS c0
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    startsWith(path, {p3:String}) AND
    position(title, {p4:String}) = 0 AND
    ifNull(value + 0 != {p5:Float64}, true) AND
    is_bot = {p6:Bool} AND
    toUnixTimestamp64Milli(time) >= {p7:Int64}
LIMIT {p8:UInt64} OFFSET {p9:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = "/100%_"
-- p4 = "_"
-- p5 = 19.0
-- p6 = true
-- p7 = 1761476400000
-- p8 = 1001
-- p9 = 0
