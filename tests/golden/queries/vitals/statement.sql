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
    NOT is_bot
GROUP BY
    c0,
    c1
ORDER BY
    c0 ASC NULLS LAST,
    c2 DESC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p3:UInt64} OFFSET {p4:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 1001
-- p4 = 0
