WITH
    toUnixTimestamp64Milli(time) AS epoch_ms,
    epoch_ms + {p3:Int64} AS wall_ms
SELECT
    toInt32(wall_ms / 86400000) AS c0,
    country AS c1,
    ifNotFinite(ifNull(sumKahan(value), 0), NULL) AS c2,
    ifNotFinite(quantileExactInclusive(0.9)(load_time), NULL) AS c3
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot AND
    country IN {p4:Array(String)}
GROUP BY
    c0,
    c1
ORDER BY
    c0 ASC NULLS LAST,
    c2 DESC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p5:UInt64} OFFSET {p6:UInt64}

-- p0 = "web_1"
-- p1 = 1761264000000
-- p2 = 1761523200000
-- p3 = 0
-- p4 = ["DE", "US"]
-- p5 = 10001
-- p6 = 0
