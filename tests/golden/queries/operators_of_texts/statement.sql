WITH
    simpleJSONExtractRaw(properties, {p8:String}) AS property_0_found,
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
                                tagged -> JSONExtractRaw(tagged, {p7:String}),
                                [replaceRegexpAll(document, '"((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)', '"(text)\\1"\\2')]
                            )[1], '"(-?[1-9][0-9]{18,})"([,}\\]]|$)', '\\1\\2'),
                            '"\\(text\\)((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)',
                            '"\\1"\\2'
                        )),
                        [if(length(raw) > 20 AND match(raw, '"(-?[1-9][0-9]{18,})"([,}\\]]|$)'), properties, '')]
                    )[1]]
                )[1],
                [JSONExtractRaw(properties, {p7:String})]
            )[1]
        )
    ) AS property_0
SELECT
    path AS c0,
    count() AS c1
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot AND
    match(path, {p3:String}) AND
    NOT match(referrer, {p4:String}) AND
    (
        endsWith(path, {p5:String}) OR
        NOT startsWith(path, {p6:String})
    ) AND
    (path != '') AND
    NOT isNotNull(load_time) AND
    NOT ifNull(property_0 != '""', false) AND
    ifNull(NOT endsWith(if(startsWith(property_0, '"'), substring(property_0, 2, -1), NULL), {p9:String}), true)
GROUP BY
    c0
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p10:UInt64} OFFSET {p11:UInt64}

-- p0 = "web_1"
-- p1 = 1761256800000
-- p2 = 1761606000000
-- p3 = "(?-s)^/(pricing|checkout)?$"
-- p4 = "(?-s)[^\\x00-\\x{10FFFF}]|é$"
-- p5 = "g"
-- p6 = "/p"
-- p7 = "plan"
-- p8 = "plan"
-- p9 = "ee"
-- p10 = 1001
-- p11 = 0
