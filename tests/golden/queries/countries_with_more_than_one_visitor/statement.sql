SELECT
    country AS c0,
    count() AS c1,
    uniqExactIf(visitor_key, visitor_key != 0) AS c2,
    ifNotFinite(max(load_time), NULL) AS c3
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot
GROUP BY
    c0
HAVING
    ifNull(c2 > {p3:Float64}, false) AND
    ifNull(c3 != {p4:Float64}, true)
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p5:UInt64} OFFSET {p6:UInt64}

-- p0 = "web_1"
-- p1 = 1761256800000
-- p2 = 1761606000000
-- p3 = 1.0
-- p4 = 0.0
-- p5 = 1001
-- p6 = 0
