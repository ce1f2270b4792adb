SELECT
    path AS c0,
    count() AS c1,
    uniqExactIf(visitor_key, visitor_key != 0) AS c2
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot
GROUP BY
    c0
WITH TOTALS
HAVING
    ifNull(c2 > {p3:Float64}, false)
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p4:UInt64} OFFSET {p5:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 1.0
-- p4 = 2
-- p5 = 0
