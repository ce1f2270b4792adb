SELECT
    path AS c0,
    count() AS c1,
    uniqExactIf(visitor_key, visitor_key != 0) AS c2
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot AND
    event_name = {p3:String}
GROUP BY
    c0
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p4:UInt64} OFFSET {p5:UInt64}

-- p0 = "web_1"
-- p1 = 1761343200000
-- p2 = 1761519600000
-- p3 = "screen_view"
-- p4 = 3
-- p5 = 0
