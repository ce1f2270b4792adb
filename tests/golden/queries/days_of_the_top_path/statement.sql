WITH
    toUnixTimestamp64Milli(start_time) AS epoch_ms,
    epoch_ms + {p3:Int64} AS wall_ms,
    (tuple(entry_path) IN (
        SELECT tuple(c0)
        FROM (
            WITH
                toUnixTimestamp64Milli(start_time) AS epoch_ms,
                epoch_ms + {p3:Int64} AS wall_ms
            SELECT
                entry_path AS c0,
                count() AS c1
            FROM (
                SELECT
                    argMinIfMerge(visit.`argMinIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, ''))`) AS entry_path,
                    fromUnixTimestamp64Milli(min(finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`)), 'UTC') AS start_time
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
                c0
            ORDER BY
                c1 DESC NULLS LAST,
                c0 ASC NULLS LAST
            LIMIT {p8:UInt64} OFFSET {p9:UInt64}
        )
    )) AS is_top
SELECT
    toInt32(wall_ms / 86400000) AS c0,
    entry_path AS c1,
    count() AS c2
FROM (
    SELECT
        argMinIfMerge(visit.`argMinIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, ''))`) AS entry_path,
        fromUnixTimestamp64Milli(min(finalizeAggregation(visit.`min(toUnixTimestamp64Milli(time))`)), 'UTC') AS start_time
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
                visit.`intDiv(toUnixTimestamp64Milli(time), 86400000)` BETWEEN {p4:Int64} AND {p5:Int64} AND
                visit.`reinterpretAsUInt128(sipHash128(session_id))` != reinterpretAsUInt128(sipHash128(''))
        )
    GROUP BY visit.`reinterpretAsUInt128(sipHash128(session_id))`
)
WHERE
    start_time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    start_time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    is_top
GROUP BY
    c0,
    c1
ORDER BY
    c0 ASC NULLS LAST,
    c2 DESC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p10:UInt64} OFFSET {p11:UInt64}

-- p0 = "web_1"
-- p1 = 1761264000000
-- p2 = 1761523200000
-- p3 = 0
-- p4 = 20385
-- p5 = 20387
-- p6 = 20385
-- p7 = 20387
-- p8 = 1
-- p9 = 0
-- p10 = 10001
-- p11 = 0
