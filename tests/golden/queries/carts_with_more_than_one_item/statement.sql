WITH
    simpleJSONExtractRaw(properties, {p6:String}) AS property_0_found,
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
                                tagged -> if(JSONHas(tagged, {p3:String}), JSONExtractRaw(tagged, {p3:String}), JSONExtractRaw(tagged, {p4:String}, {p5:String})),
                                [replaceRegexpAll(document, '"((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)', '"(text)\\1"\\2')]
                            )[1], '"(-?[1-9][0-9]{18,})"([,}\\]]|$)', '\\1\\2'),
                            '"\\(text\\)((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)',
                            '"\\1"\\2'
                        )),
                        [if(length(raw) > 20 AND match(raw, '"(-?[1-9][0-9]{18,})"([,}\\]]|$)'), properties, '')]
                    )[1]]
                )[1],
                [if(JSONHas(properties, {p3:String}), JSONExtractRaw(properties, {p3:String}), JSONExtractRaw(properties, {p4:String}, {p5:String}))]
            )[1]
        )
    ) AS property_0,
    if(has_simple_properties, toFloat64OrNull(property_0_found), toFloat64OrNull(property_0)) AS property_0_number,
    simpleJSONExtractRaw(properties, {p9:String}) AS property_1_found,
    if(
        bitAnd(has_simple_properties, ascii(property_1_found) <= 34),
        nullIf(property_1_found, ''),
        if(
            has_simple_properties AND (property_1_found IN ('true', 'false') OR toUInt32OrZero(property_1_found) > 0),
            property_1_found,
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
                                tagged -> JSONExtractRaw(tagged, {p8:String}),
                                [replaceRegexpAll(document, '"((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)', '"(text)\\1"\\2')]
                            )[1], '"(-?[1-9][0-9]{18,})"([,}\\]]|$)', '\\1\\2'),
                            '"\\(text\\)((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)',
                            '"\\1"\\2'
                        )),
                        [if(length(raw) > 20 AND match(raw, '"(-?[1-9][0-9]{18,})"([,}\\]]|$)'), properties, '')]
                    )[1]]
                )[1],
                [JSONExtractRaw(properties, {p8:String})]
            )[1]
        )
    ) AS property_1,
    if(has_simple_properties, toFloat64OrNull(property_1_found), toFloat64OrNull(property_1)) AS property_1_number
SELECT
    count() AS c0,
    ifNotFinite(max(property_0_number), NULL) AS c1
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
