SELECT
    sum(event_count) AS c0
FROM (
    SELECT
        fromUnixTimestamp64Milli(visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` * 86400000, 'UTC') AS time,
        visit.`is_bot` AS is_bot,
        finalizeAggregation(visit.`count()`) AS event_count,
        finalizeAggregation(visit.`countIf(in(event_name, ('screen_view', 'pageview', 'page_view')))`) AS page_views
    FROM mergeTreeProjection('', 'events', 'visits') AS visit
    WHERE
        website_id = {p0:String} AND
        (visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p3:Int64} AND {p4:Int64}) AND
        NOT is_bot
)
WHERE
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot
LIMIT {p5:UInt64} OFFSET {p6:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 20386
-- p4 = 20387
-- p5 = 1001
-- p6 = 0
