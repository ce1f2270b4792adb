WITH
    position(properties, '\\') + position(properties, ':{"') + position(properties, ',{"') + position(properties, '[{"') = 0 AS properties_flat,
    simpleJSONExtractRaw(properties, {p4:String}) AS property_0_found,
    JSONExtractRaw(properties, {p3:String}) AS property_0_raw,
    arrayDistinct(extractAll(property_0_raw, '"-?[1-9][0-9]{18,}"')) AS property_0_long,
    arrayFold(
        (document, digits) -> replaceAll(document, digits, concat('"(text)', substring(digits, 2))),
        property_0_long,
        properties
    ) AS property_0_marked,
    if(length(property_0_raw) <= 20 OR empty(property_0_long), property_0_raw, arrayFold(
        (json, digits) -> replaceAll(
            replaceAll(json, digits, trim(BOTH '"' FROM digits)),
            concat('"(text)', substring(digits, 2)),
            digits
        ),
        property_0_long,
        JSONExtractRaw(property_0_marked, {p3:String})
    )) AS property_0_json,
    if(
        bitAnd(properties_flat, ascii(property_0_found) <= 34),
        nullIf(property_0_found, ''),
        if(
            properties_flat AND (property_0_found IN ('true', 'false') OR toUInt32OrZero(property_0_found) > 0),
            property_0_found,
            multiIf(
                property_0_json IN ('', 'null'), NULL,
                property_0_json = '-0', '0',
                startsWith(property_0_json, '"'), concat('"', JSONExtractString(property_0_json), '"'),
                property_0_json
            )
        )
    ) AS property_0,
    simpleJSONExtractRaw(properties, {p6:String}) AS property_1_found,
    JSONExtractRaw(properties, {p5:String}) AS property_1_raw,
    arrayDistinct(extractAll(property_1_raw, '"-?[1-9][0-9]{18,}"')) AS property_1_long,
    arrayFold(
        (document, digits) -> replaceAll(document, digits, concat('"(text)', substring(digits, 2))),
        property_1_long,
        properties
    ) AS property_1_marked,
    if(length(property_1_raw) <= 20 OR empty(property_1_long), property_1_raw, arrayFold(
        (json, digits) -> replaceAll(
            replaceAll(json, digits, trim(BOTH '"' FROM digits)),
            concat('"(text)', substring(digits, 2)),
            digits
        ),
        property_1_long,
        JSONExtractRaw(property_1_marked, {p5:String})
    )) AS property_1_json,
    if(
        bitAnd(properties_flat, ascii(property_1_found) <= 34),
        nullIf(property_1_found, ''),
        if(
            properties_flat AND (property_1_found IN ('true', 'false') OR toUInt32OrZero(property_1_found) > 0),
            property_1_found,
            multiIf(
                property_1_json IN ('', 'null'), NULL,
                property_1_json = '-0', '0',
                startsWith(property_1_json, '"'), concat('"', JSONExtractString(property_1_json), '"'),
                property_1_json
            )
        )
    ) AS property_1,
    if(properties_flat, toFloat64OrZero(property_1_found), ifNull(toFloat64OrNull(property_1), 0)) AS property_1_addend
SELECT
    property_0 AS c0,
    count() AS c1,
    ifNotFinite(ifNull(sumKahan(property_1_addend), 0), NULL) AS c2
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot
GROUP BY
    c0
ORDER BY
    isNull(c0) ASC,
    transform(left(c0, 1), ['t', 'f', '"', '{', '['], [2, 2, 3, 4, 4], 1) DESC,
    toFloat64OrNull(c0) DESC NULLS LAST,
    if(startsWith(c0, '"'), left(c0, -1), c0) DESC NULLS LAST,
    c1 DESC NULLS LAST
LIMIT {p7:UInt64} OFFSET {p8:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = "plan"
-- p4 = "plan"
-- p5 = "value"
-- p6 = "value"
-- p7 = 1001
-- p8 = 0
