WITH
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
    multiIf(
        property_0_json IN ('', 'null'), NULL,
        property_0_json = '-0', '0',
        startsWith(property_0_json, '"'), concat('"', JSONExtractString(property_0_json)),
        property_0_json
    ) AS property_0,
    JSONExtractRaw(properties, {p4:String}) AS property_1_raw,
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
        JSONExtractRaw(property_1_marked, {p4:String})
    )) AS property_1_json,
    multiIf(
        property_1_json IN ('', 'null'), NULL,
        property_1_json = '-0', '0',
        startsWith(property_1_json, '"'), concat('"', JSONExtractString(property_1_json)),
        property_1_json
    ) AS property_1
SELECT
    property_0 AS c0,
    count() AS c1,
    ifNotFinite(ifNull(sumKahan(toFloat64OrNull(property_1)), 0), NULL) AS c2
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
    c0 DESC NULLS LAST,
    c1 DESC NULLS LAST
LIMIT {p5:UInt64} OFFSET {p6:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = "plan"
-- p4 = "value"
-- p5 = 1001
-- p6 = 0
