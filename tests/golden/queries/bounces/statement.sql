SELECT
    uniqExactIf(session_key, session_key != 0) AS c0
FROM (
    SELECT
        fromUnixTimestamp64Milli(min(finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`)), 'UTC') AS start_time,
        toBool(sum(finalizeAggregation(visit.`countIf(in(event_name, ('screen_view', 'pageview', 'page_view')))`)) <= 1 AND (max(finalizeAggregation(visit.`max(toUnixTimestamp64Milli(time))`)) - min(finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`))) < 10000) AS is_bounce,
        visit.`reinterpretAsUInt128(sipHash128(session_id))` AS session_key
    FROM mergeTreeProjection('', 'events', 'visits') AS visit
    WHERE
        website_id = {p0:String} AND
        NOT is_bot AND
        visit.`reinterpretAsUInt128(sipHash128(session_id))` != reinterpretAsUInt128(sipHash128('')) AND
        toUInt64(visit.`reinterpretAsUInt128(sipHash128(session_id))`) IN (
            SELECT
                toUInt64(visit.`reinterpretAsUInt128(sipHash128(session_id))`)
            FROM mergeTreeProjection('', 'events', 'visits') AS visit
            WHERE
                website_id = {p0:String} AND
                NOT is_bot AND
                visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p3:Int64} AND {p4:Int64} AND
                visit.`reinterpretAsUInt128(sipHash128(session_id))` != reinterpretAsUInt128(sipHash128(''))
        )
    GROUP BY visit.`reinterpretAsUInt128(sipHash128(session_id))`
)
WHERE
    start_time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    start_time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    is_bounce = {p5:Bool}
LIMIT {p6:UInt64} OFFSET {p7:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 20386
-- p4 = 20387
-- p5 = true
-- p6 = 1001
-- p7 = 0
