SELECT
    fingerprint AS c0,
    count() AS c1,
    min(toNullable(toUnixTimestamp64Milli(time))) AS c2,
    max(toNullable(toUnixTimestamp64Milli(time))) AS c3
FROM errors
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot AND
    (fingerprint != '')
GROUP BY
    c0
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p3:UInt64} OFFSET {p4:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 1001
-- p4 = 0
