WITH
    toUnixTimestamp64Milli(time) AS epoch_ms,
    epoch_ms + transform(roundDown(epoch_ms, {p3:Array(Int64)}), {p3:Array(Int64)}, {p4:Array(Int64)}, 0) AS wall_ms
SELECT
    toInt32(intDiv(wall_ms, 86400000)) AS c0,
    country AS c1,
    ifNotFinite(ifNull(sumKahan(value), 0), NULL) AS c2,
    ifNotFinite(quantileExactInclusive(0.9)(load_time), NULL) AS c3
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot AND
    country IN {p5:Array(String)}
GROUP BY
    c0,
    c1
ORDER BY
    c0 ASC NULLS LAST,
    c2 DESC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p6:UInt64} OFFSET {p7:UInt64}

-- p0 = "web_1"
-- p1 = 1761264000000
-- p2 = 1761523200000
-- p3 = [1761264000000]
-- p4 = [0]
-- p5 = ["DE", "US"]
-- p6 = 10001
-- p7 = 0
