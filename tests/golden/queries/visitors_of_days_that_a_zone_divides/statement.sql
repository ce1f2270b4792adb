SELECT
    country AS c0,
    uniqExactIf(visitor_key, visitor_key != 0) AS c1,
    sum(event_count) AS c2
FROM (
    SELECT
        fromUnixTimestamp64Milli(visit.day * 86400000, 'UTC') AS time,
        visit.country AS country,
        visit.is_bot AS is_bot,
        if(visit.person_key = reinterpretAsUInt128(sipHash128('')), toUInt128(0), visit.person_key) AS visitor_key,
        visit.event_count AS event_count,
        visit.page_views AS page_views
    FROM visits AS visit
    WHERE
        website_id = {p0:String} AND
        (visit.day BETWEEN {p5:Int64} AND {p6:Int64}) AND
        visit.day NOT IN ({p3:Int64}, {p4:Int64}) AND
        NOT is_bot
    UNION ALL
    SELECT
        time,
        country,
        is_bot,
        visitor_key,
        toUInt64(1) AS event_count,
        toUInt64(event_name IN ('screen_view', 'pageview', 'page_view')) AS page_views
    FROM events
    WHERE
        website_id = {p0:String} AND
        NOT is_bot AND
        (
            (time >= fromUnixTimestamp64Milli({p3:Int64} * 86400000, 'UTC') AND time < fromUnixTimestamp64Milli(({p3:Int64} + 1) * 86400000, 'UTC')) OR
            (time >= fromUnixTimestamp64Milli({p4:Int64} * 86400000, 'UTC') AND time < fromUnixTimestamp64Milli(({p4:Int64} + 1) * 86400000, 'UTC'))
        )
)
WHERE
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot
GROUP BY
    c0
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p7:UInt64} OFFSET {p8:UInt64}

-- p0 = "web_1"
-- p1 = 1761256800000
-- p2 = 1761692400000
-- p3 = 20384
-- p4 = 20389
-- p5 = 20384
-- p6 = 20389
-- p7 = 1001
-- p8 = 0
