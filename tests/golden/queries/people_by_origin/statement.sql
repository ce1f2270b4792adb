SELECT
    referrer AS c0,
    country AS c1,
    count() AS c2,
    ifNotFinite(max(session_count), NULL) AS c3,
    ifNotFinite(ifNull(sumKahan(event_count), 0), NULL) AS c4
FROM (
    SELECT
        argMinIfMerge(visit.`argMinIf(referrer, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(referrer, ''))`) AS referrer,
        argMaxIf(visit.`country`, finalizeAggregation(visit.`max(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`), visit.`country` != '') AS country,
        toNullable(toFloat64(uniqExactIf(visit.`reinterpretAsUInt128(sipHash128(session_id))`, visit.`reinterpretAsUInt128(sipHash128(session_id))` != reinterpretAsUInt128(sipHash128(''))))) AS session_count,
        toNullable(toFloat64(sum(finalizeAggregation(visit.`count()`)))) AS event_count
    FROM mergeTreeProjection('', 'events', 'visits') AS visit
    WHERE
        website_id = {p0:String} AND
        NOT is_bot AND
        visit.`reinterpretAsUInt128(sipHash128(anonymous_id))` != reinterpretAsUInt128(sipHash128('')) AND
        toUInt64(visit.`reinterpretAsUInt128(sipHash128(anonymous_id))`) IN (
            SELECT
                toUInt64(visit.`reinterpretAsUInt128(sipHash128(anonymous_id))`)
            FROM mergeTreeProjection('', 'events', 'visits') AS visit
            WHERE
                website_id = {p0:String} AND
                NOT is_bot AND
                visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p3:Int64} AND {p4:Int64} AND
                visit.`reinterpretAsUInt128(sipHash128(anonymous_id))` != reinterpretAsUInt128(sipHash128(''))
        )
    GROUP BY visit.`reinterpretAsUInt128(sipHash128(anonymous_id))`
    HAVING max(toInt64(bitShiftRight(finalizeAggregation(visit.`max(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`), 128)) >= toUnixTimestamp64Milli(fromUnixTimestamp64Milli({p1:Int64}, 'UTC')) AND finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`) < toUnixTimestamp64Milli(fromUnixTimestamp64Milli({p2:Int64}, 'UTC')))
)
GROUP BY
    c0,
    c1
ORDER BY
    c2 DESC NULLS LAST,
    c0 ASC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p5:UInt64} OFFSET {p6:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 20386
-- p4 = 20387
-- p5 = 1001
-- p6 = 0
