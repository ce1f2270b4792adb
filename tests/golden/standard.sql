-- events
WITH
    (time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC')) AS in_range,
    (time >= fromUnixTimestamp64Milli({p3:Int64}, 'UTC') AND time < fromUnixTimestamp64Milli({p4:Int64}, 'UTC')) AS in_compared
SELECT
    multiIf(grouping(c0) = 0, 0, 1) AS breakdown,
    if(event_name IN {p5:Array(String)}, path, '') AS c0,
    event_name AS c1,
    countIf(in_range) AS c2,
    uniqExactIf(visitor_key, visitor_key != 0 AND in_range) AS c3,
    countIf(in_compared) AS c4,
    uniqExactIf(visitor_key, visitor_key != 0 AND in_compared) AS c5,
    countIf(in_range) AS c6,
    countIf(in_compared) AS c7
FROM events
WHERE
    website_id = {p0:String} AND
    (in_range OR in_compared) AND
    NOT is_bot
GROUP BY GROUPING SETS (
    (c0),
    (c1)
)
HAVING
    (breakdown = 1 OR c0 != '' OR c1 != '') AND
    c6 > 0
ORDER BY
    breakdown ASC,
    array(c2, c2)[breakdown + 1] DESC,
    c0 ASC,
    c1 ASC
LIMIT {p6:UInt64} BY breakdown

-- sessions
WITH
    (start_time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND start_time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC')) AS in_range,
    (start_time >= fromUnixTimestamp64Milli({p3:Int64}, 'UTC') AND start_time < fromUnixTimestamp64Milli({p4:Int64}, 'UTC')) AS in_compared
SELECT
    multiIf(grouping(c0) = 0, 0, grouping(c1) = 0, 1, grouping(c2) = 0, 2, 3) AS breakdown,
    entry_path AS c0,
    exit_path AS c1,
    referrer AS c2,
    utm_source AS c3,
    utm_medium AS c4,
    utm_campaign AS c5,
    countIf(in_range) AS c6,
    uniqExactIf(visitor_key, visitor_key != 0 AND in_range) AS c7,
    countIf(in_range AND is_bounce = {p9:Bool}) AS c8,
    countIf(in_compared) AS c9,
    uniqExactIf(visitor_key, visitor_key != 0 AND in_compared) AS c10,
    countIf(in_compared AND is_bounce = {p9:Bool}) AS c11,
    countIf(in_range) AS c12,
    countIf(in_compared) AS c13
FROM (
    SELECT
        argMinIfMerge(visit.`argMinIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, ''))`) AS entry_path,
        argMaxIfMerge(visit.`argMaxIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, ''))`) AS exit_path,
        argMinIfMerge(visit.`argMinIf(referrer, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(referrer, ''))`) AS referrer,
        argMinIf(visit.`utm_source`, finalizeAggregation(visit.`min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`), visit.`utm_source` != '') AS utm_source,
        argMinIf(visit.`utm_medium`, finalizeAggregation(visit.`min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`), visit.`utm_medium` != '') AS utm_medium,
        argMinIf(visit.`utm_campaign`, finalizeAggregation(visit.`min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`), visit.`utm_campaign` != '') AS utm_campaign,
        fromUnixTimestamp64Milli(min(toInt64(bitShiftRight(finalizeAggregation(visit.`min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`), 128))), 'UTC') AS start_time,
        toBool(sum(finalizeAggregation(visit.`countIf(in(event_name, ('screen_view', 'pageview', 'page_view')))`)) <= 1 AND (max(finalizeAggregation(visit.`max(toUnixTimestamp64Milli(time))`)) - min(toInt64(bitShiftRight(finalizeAggregation(visit.`min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`), 128)))) < 10000) AS is_bounce,
        argMinIf(visit.`reinterpretAsUInt128(sipHash128(anonymous_id))`, finalizeAggregation(visit.`min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`), visit.`reinterpretAsUInt128(sipHash128(anonymous_id))` != reinterpretAsUInt128(sipHash128(''))) AS visitor_key
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
                (visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p5:Int64} AND {p6:Int64} OR visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p7:Int64} AND {p8:Int64}) AND
                visit.`reinterpretAsUInt128(sipHash128(session_id))` != reinterpretAsUInt128(sipHash128(''))
        )
    GROUP BY visit.`reinterpretAsUInt128(sipHash128(session_id))`
)
WHERE
    (in_range OR in_compared)
GROUP BY GROUPING SETS (
    (c0),
    (c1),
    (c2),
    (c3, c4, c5)
)
HAVING
    (c0 != '' OR c1 != '' OR c2 != '' OR c3 != '' OR c4 != '' OR c5 != '') AND
    c12 > 0
ORDER BY
    breakdown ASC,
    array(c6, c6, c6, c6)[breakdown + 1] DESC,
    c0 ASC,
    c1 ASC,
    c2 ASC,
    c3 ASC,
    c4 ASC,
    c5 ASC
LIMIT {p10:UInt64} BY breakdown
