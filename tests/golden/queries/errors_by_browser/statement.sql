SELECT
    message AS c0,
    browser_name AS c1,
    count() AS c2
FROM errors
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot AND
    level = {p3:String}
GROUP BY
    c0,
    c1
ORDER BY
    c2 DESC NULLS LAST,
    c0 ASC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p4:UInt64} OFFSET {p5:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = "error"
-- p4 = 1001
-- p5 = 0
