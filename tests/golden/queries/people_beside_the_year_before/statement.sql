SELECT
    ifNotFinite(ifNull(sumKahanIf(event_count, in_range), 0), NULL) AS c0,
    ifNotFinite(ifNull(sumKahanIf(event_count, in_compared), 0), NULL) AS c1,
    countIf(in_range) AS c2,
    countIf(in_compared) AS c3
FROM (
    SELECT
        toNullable(toFloat64(sum(finalizeAggregation(visit.`count()`)))) AS event_count,
        max(finalizeAggregation(visit.`max(toUnixTimestamp64Milli(time))`) >= toUnixTimestamp64Milli(fromUnixTimestamp64Milli({p1:Int64}, 'UTC')) AND finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`) < toUnixTimestamp64Milli(fromUnixTimestamp64Milli({p2:Int64}, 'UTC'))) AS in_range,
        max(finalizeAggregation(visit.`max(toUnixTimestamp64Milli(time))`) >= toUnixTimestamp64Milli(fromUnixTimestamp64Milli({p3:Int64}, 'UTC')) AND finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`) < toUnixTimestamp64Milli(fromUnixTimestamp64Milli({p4:Int64}, 'UTC'))) AS in_compared
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
                (visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p5:Int64} AND {p6:Int64} OR visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p7:Int64} AND {p8:Int64}) AND
                visit.`reinterpretAsUInt128(sipHash128(anonymous_id))` != reinterpretAsUInt128(sipHash128(''))
        )
    GROUP BY visit.`reinterpretAsUInt128(sipHash128(anonymous_id))`
    HAVING in_range OR in_compared
)
LIMIT {p9:UInt64} OFFSET {p10:UInt64}

-- p0 = "web_1"
-- p1 = 1761436800000
-- p2 = 1761523200000
-- p3 = 1729900800000
-- p4 = 1729987200000
-- p5 = 20387
-- p6 = 20387
-- p7 = 20022
-- p8 = 20022
-- p9 = 1001
-- p10 = 0
