WITH
    position(properties, '\\') + position(properties, ':{"') + position(properties, ',{"') + position(properties, '[{"') = 0 AS properties_flat,
    simpleJSONExtractRaw(properties, {p6:String}) AS property_0_found,
    if(JSONHas(properties, {p3:String}), JSONExtractRaw(properties, {p3:String}), JSONExtractRaw(properties, {p4:String}, {p5:String})) AS property_0_raw,
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
        if(JSONHas(property_0_marked, {p3:String}), JSONExtractRaw(property_0_marked, {p3:String}), JSONExtractRaw(property_0_marked, {p4:String}, {p5:String}))
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
    if(properties_flat, toFloat64OrNull(property_0_found), toFloat64OrNull(property_0)) AS property_0_number,
    simpleJSONExtractRaw(properties, {p9:String}) AS property_1_found,
    JSONExtractRaw(properties, {p8:String}) AS property_1_raw,
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
        JSONExtractRaw(property_1_marked, {p8:String})
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
    if(properties_flat, toFloat64OrNull(property_1_found), toFloat64OrNull(property_1)) AS property_1_number
SELECT
    count() AS c0,
    max(property_0_number) AS c1
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot AND
    ifNull(property_0_number > {p7:Float64}, false) AND
    NOT ifNull(property_1 IN {p10:Array(String)} OR property_1_number IN {p11:Array(Float64)}, false)
LIMIT {p12:UInt64} OFFSET {p13:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = "cart.items"
-- p4 = "cart"
-- p5 = "items"
-- p6 = "cart.items"
-- p7 = 1
-- p8 = "plan"
-- p9 = "plan"
-- p10 = ["\"free\""]
-- p11 = [7.5]
-- p12 = 1001
-- p13 = 0
