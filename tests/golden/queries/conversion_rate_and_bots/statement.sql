WITH
    simpleJSONExtractRaw(properties, {p9:String}) AS property_0_found,
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
    ) AS property_0,
    if(has_simple_properties, toFloat64OrZero(property_0_found), ifNull(toFloat64OrNull(property_0), 0)) AS property_0_addend
SELECT
    country AS c0,
    countIf(NOT is_bot) AS c1,
    uniqExactIf(visitor_key, visitor_key != 0 AND NOT is_bot AND event_name = {p3:String}) AS c2,
    ifNotFinite(sumKahanIf(load_time, NOT is_bot AND startsWith(path, {p4:String}) AND (country != '')) / countIf(load_time, NOT is_bot AND startsWith(path, {p4:String}) AND (country != '')), NULL) AS c3,
    ifNotFinite(ifNull(sumKahanIf(property_0_addend, NOT is_bot AND path = {p5:String}), 0), NULL) AS c4,
    ifNotFinite(quantileExactInclusiveIf(0.5)(load_time, NOT is_bot AND path = {p6:String}), NULL) AS c5,
    countIf(is_bot = {p7:Bool}) AS c6
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    (
        NOT is_bot OR
        is_bot = {p7:Bool}
    )
GROUP BY
    c0
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p10:UInt64} OFFSET {p11:UInt64}

-- p0 = "web_1"
-- p1 = 1761256800000
-- p2 = 1761606000000
-- p3 = "signup"
-- p4 = "/p"
-- p5 = "/"
-- p6 = "/"
-- p7 = true
-- p8 = "plan"
-- p9 = "plan"
-- p10 = 1001
-- p11 = 0
