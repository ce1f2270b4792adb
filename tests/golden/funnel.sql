SELECT *
FROM (
    SELECT
        c0,
        arrayPushFront(countForEach(elapsed), count()) AS c1,
        quantileExactInclusiveForEach(0.5)(elapsed) AS c2
    FROM (
        SELECT
            tupleElement(labels[arraySort(
                position -> reinterpretAsFixedString(ids[position]),
                arrayFilter(
                    (position, hit) -> bitTest(hit, 0) AND bitShiftRight(hit, 16) = began,
                    arrayEnumerate(gathered),
                    gathered
                )
            )[1]], 1) AS c0,
            arrayMap(hit -> bitShiftRight(hit, 16) - began, completions) AS elapsed
        FROM (
            SELECT
                *,
                bitShiftRight(if(empty(completions), arrayMin(arrayFilter(hit -> bitTest(hit, 0), gathered)), arrayFirst(
                    hit -> bitTest(hit, 0) AND bitOr(hit, 65535) + {p3:UInt64} >= completions[-1],
                    hits
                )), 16) AS began
            FROM (
                SELECT
                    *,
                    arrayFilter(hit -> hit != 0, [
                        arrayFirst(
                            (hit, start) -> bitTest(hit, 1) AND start + {p3:UInt64} >= hit,
                            hits,
                            arrayShiftRight(arrayFill(start -> start != 0, starts_of_first), 1, toUInt64(0))
                        )
                    ]) AS completions
                FROM (
                    SELECT
                        *,
                        arrayMap(hit -> if(bitTest(hit, 0), bitOr(hit, 65535), 0), hits) AS starts_of_first
                    FROM (
                        SELECT
                            *,
                            if(
                                arrayExists(
                                    (hit, before) -> hit != before AND bitXor(hit, before) < 65536,
                                    by_time,
                                    arrayShiftRight(by_time, 1, toUInt64(0))
                                ),
                                arraySort((hit, id) -> (bitShiftRight(hit, 16), reinterpretAsFixedString(id)), gathered, ids),
                                by_time
                            ) AS hits
                        FROM (
                            WITH
                                simpleJSONExtractRaw(properties, {p5:String}) AS property_0_found,
                                if(
                                    bitAnd(has_simple_properties, ascii(property_0_found) <= 34),
                                    nullIf(property_0_found, ''),
                                    if(
                                        has_simple_properties AND (property_0_found IN ('true', 'false') OR toUInt32OrZero(property_0_found) > 0),
                                        property_0_found,
                                        arrayMap(
                                            raw -> arrayMap(
                                                json -> multiIf(
                                                    json IN ('', 'null'), NULL,
                                                    json = '-0', '0',
                                                    startsWith(json, '"'), concat('"', JSONExtractString(json), '"'),
                                                    json
                                                ),
                                                [arrayMap(
                                                    document -> if(document = '', raw, replaceRegexpAll(
                                                        replaceRegexpAll(arrayMap(
                                                            tagged -> JSONExtractRaw(tagged, {p4:String}),
                                                            [replaceRegexpAll(document, '"((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)', '"(text)\\1"\\2')]
                                                        )[1], '"(-?[1-9][0-9]{18,})"([,}\\]]|$)', '\\1\\2'),
                                                        '"\\(text\\)((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)',
                                                        '"\\1"\\2'
                                                    )),
                                                    [if(length(raw) > 20 AND match(raw, '"(-?[1-9][0-9]{18,})"([,}\\]]|$)'), properties, '')]
                                                )[1]]
                                            )[1],
                                            [JSONExtractRaw(properties, {p4:String})]
                                        )[1]
                                    )
                                ) AS property_0,
                                toUInt16((
                                    path = {p6:String} AND
                                    NOT is_bot
                                ) * 1 + (
                                    event_name = {p7:String} AND
                                    NOT is_bot
                                ) * 2) AS bits,
                                toUInt64(toUnixTimestamp64Milli(time)) * 65536 + bits AS hit
                            SELECT
                                if(bitTest(groupBitOr(bits), 1), arraySort(groupArray(hit)), emptyArrayUInt64()) AS by_time,
                                groupArray(hit) AS gathered,
                                groupArray(reinterpretAsUInt128(id)) AS ids,
                                groupArray((property_0,)) AS labels
                            FROM events
                            WHERE
                                website_id = {p0:String} AND
                                time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
                                time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
                                session_key != 0 AND
                                bits != 0
                            GROUP BY session_key
                            HAVING bitTest(groupBitOr(bits), 0)
                        )
                    )
                )
            )
        )
    )
    GROUP BY c0
)
ORDER BY
    c1[1] DESC NULLS LAST,
    isNull(c0) ASC,
    transform(left(c0, 1), ['t', 'f', '"', '{', '['], [2, 2, 3, 4, 4], 1) ASC,
    toFloat64OrNull(c0) ASC NULLS LAST,
    if(startsWith(c0, '"'), left(c0, -1), c0) ASC NULLS LAST
LIMIT {p8:UInt64}

-- p0 = "web_1"
-- p1 = 1767225600000
-- p2 = 1769904000000
-- p3 = 3932160000
-- p4 = "plan"
-- p5 = "plan"
-- p6 = "/cart"
-- p7 = "purchase"
-- p8 = 1001
