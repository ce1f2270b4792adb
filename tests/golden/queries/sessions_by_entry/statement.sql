WITH
    toUnixTimestamp64Milli(start_time) AS epoch_ms,
    epoch_ms + {p3:Int64} + (epoch_ms >= {p4:Int64}) * {p5:Int64} AS wall_ms
SELECT
    toInt32(wall_ms / 86400000) AS c0,
    entry_path AS c1,
    is_bounce AS c2,
    count() AS c3,
    ifNotFinite(sumKahan(duration) / count(duration), NULL) AS c4,
    ifNotFinite(ifNull(sumKahan(page_views), 0), NULL) AS c5
FROM (
    SELECT
        argMinIfMerge(visit.`argMinIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, ''))`) AS entry_path,
        fromUnixTimestamp64Milli(min(finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`)), 'UTC') AS start_time,
        toBool(sum(finalizeAggregation(visit.`countIf(in(event_name, ('screen_view', 'pageview', 'page_view')))`)) <= 1 AND (max(finalizeAggregation(visit.`max(toUnixTimestamp64Milli(time))`)) - min(finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`))) < 10000) AS is_bounce,
        toNullable(toFloat64((max(finalizeAggregation(visit.`max(toUnixTimestamp64Milli(time))`)) - min(finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`))) / 1000)) AS duration,
        toNullable(toFloat64(sum(finalizeAggregation(visit.`countIf(in(event_name, ('screen_view', 'pageview', 'page_view')))`)))) AS page_views
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
                visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p6:Int64} AND {p7:Int64} AND
                visit.`reinterpretAsUInt128(sipHash128(session_id))` != reinterpretAsUInt128(sipHash128(''))
        )
    GROUP BY visit.`reinterpretAsUInt128(sipHash128(session_id))`
)
WHERE
    start_time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    start_time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC')
GROUP BY
    c0,
    c1,
    c2
ORDER BY
    c0 ASC NULLS LAST,
    c3 DESC NULLS LAST,
    c1 ASC NULLS LAST,
    c2 ASC NULLS LAST
LIMIT {p8:UInt64} OFFSET {p9:UInt64}

-- p0 = "web_1"
-- p1 = 1761256800000
-- p2 = 1761519600000
-- p3 = 7200000
-- p4 = 1761440400000
-- p5 = -3600000
-- p6 = 20384
-- p7 = 20387
-- p8 = 1001
-- p9 = 0
