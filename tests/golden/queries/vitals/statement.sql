WITH
    intDiv(toUnixTimestamp64Milli(time), 1000) AS epoch_second,
    roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
    epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
SELECT
    metric_name AS c0,
    path AS c1,
    ifNotFinite(quantileExactInclusive(0.75)(metric_value), NULL) AS c2,
    ifNotFinite(quantileExactInclusive(0.5)(metric_value), NULL) AS c3,
    count() AS c4
FROM performance
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
    c0 ASC NULLS LAST,
    c2 DESC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p8:UInt64} OFFSET {p9:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = true
-- p4 = 20386
-- p5 = 20387
-- p6 = [1761350400]
-- p7 = [0]
-- p8 = 1001
-- p9 = 0
