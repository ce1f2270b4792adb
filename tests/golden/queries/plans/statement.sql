SELECT *
FROM (
    WITH
        simpleJSONExtractRaw(properties, {p4:String}) AS property_0_found,
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
                                    tagged -> JSONExtractRaw(tagged, {p3:String}),
                                    [replaceRegexpAll(document, '"((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)', '"(text)\\1"\\2')]
                                )[1], '"(-?[1-9][0-9]{18,})"([,}\\]]|$)', '\\1\\2'),
                                '"\\(text\\)((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)',
                                '"\\1"\\2'
                            )),
                            [if(length(raw) > 20 AND match(raw, '"(-?[1-9][0-9]{18,})"([,}\\]]|$)'), properties, '')]
                        )[1]]
                    )[1],
                    [JSONExtractRaw(properties, {p3:String})]
                )[1]
            )
        ) AS property_0,
        simpleJSONExtractRaw(properties, {p6:String}) AS property_1_found,
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
                                    tagged -> JSONExtractRaw(tagged, {p5:String}),
                                    [replaceRegexpAll(document, '"((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)', '"(text)\\1"\\2')]
                                )[1], '"(-?[1-9][0-9]{18,})"([,}\\]]|$)', '\\1\\2'),
                                '"\\(text\\)((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)',
                                '"\\1"\\2'
                            )),
                            [if(length(raw) > 20 AND match(raw, '"(-?[1-9][0-9]{18,})"([,}\\]]|$)'), properties, '')]
                        )[1]]
                    )[1],
                    [JSONExtractRaw(properties, {p5:String})]
                )[1]
            )
        ) AS property_1,
        if(has_simple_properties, toFloat64OrZero(property_1_found), ifNull(toFloat64OrNull(property_1), 0)) AS property_1_addend
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
)
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
