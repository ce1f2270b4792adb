WITH
    simpleJSONExtractRaw(properties, {p7:String}) AS property_0_found,
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
                                tagged -> JSONExtractRaw(tagged, {p6:String}),
                                [replaceRegexpAll(document, '"((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)', '"(text)\\1"\\2')]
                            )[1], '"(-?[1-9][0-9]{18,})"([,}\\]]|$)', '\\1\\2'),
                            '"\\(text\\)((?:\\(text\\))*-?[1-9][0-9]{18,})"([,}\\]]|$)',
                            '"\\1"\\2'
                        )),
                        [if(length(raw) > 20 AND match(raw, '"(-?[1-9][0-9]{18,})"([,}\\]]|$)'), properties, '')]
                    )[1]]
                )[1],
                [JSONExtractRaw(properties, {p6:String})]
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
    (
        country = {p3:String} OR
        (
            startsWith(path, {p4:String}) AND
            (
                ifNull(value + 0 > {p5:Float64}, false) OR
                ifNull(property_0 IN {p8:Array(String)}, false)
            )
        )
    ) AND
    event_name != {p9:String}
GROUP BY
    c0
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p10:UInt64} OFFSET {p11:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = "DE"
-- p4 = "/"
-- p5 = 10.0
-- p6 = "plan"
-- p7 = "plan"
-- p8 = ["\"pro\""]
-- p9 = "ping"
-- p10 = 1001
-- p11 = 0
