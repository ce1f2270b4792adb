WITH
    intDiv(toUnixTimestamp64Milli(time), 1000) AS epoch_second,
    roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
    epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second,
    if(JSONHas(properties, {p8:String}), JSONExtractRaw(properties, {p8:String}), JSONExtractRaw(properties, {p9:String}, {p10:String})) AS property_0_raw,
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
        if(JSONHas(property_0_marked, {p8:String}), JSONExtractRaw(property_0_marked, {p8:String}), JSONExtractRaw(property_0_marked, {p9:String}, {p10:String}))
    )) AS property_0_json,
    multiIf(
        property_0_json IN ('', 'null'), NULL,
        property_0_json = '-0', '0',
        startsWith(property_0_json, '"'), concat('"', JSONExtractString(property_0_json)),
        property_0_json
    ) AS property_0,
    JSONExtractRaw(properties, {p12:String}) AS property_1_raw,
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
        JSONExtractRaw(property_1_marked, {p12:String})
    )) AS property_1_json,
    multiIf(
        property_1_json IN ('', 'null'), NULL,
        property_1_json = '-0', '0',
        startsWith(property_1_json, '"'), concat('"', JSONExtractString(property_1_json)),
        property_1_json
    ) AS property_1
SELECT
    count() AS c0,
    max(toFloat64OrNull(property_0)) AS c1
FROM events
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64}) AND
    NOT is_bot AND
    ifNull(toFloat64OrNull(property_0) > {p11:Float64}, false) AND
    NOT ifNull(property_1 IN {p13:Array(String)} OR toFloat64OrNull(property_1) IN {p14:Array(Float64)}, false)
LIMIT {p15:UInt64} OFFSET {p16:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = true
-- p4 = 20386
-- p5 = 20387
-- p6 = [1761350400]
-- p7 = [0]
-- p8 = "cart.items"
-- p9 = "cart"
-- p10 = "items"
-- p11 = 1
-- p12 = "plan"
-- p13 = ["\"free"]
-- p14 = [7.5]
-- p15 = 1001
-- p16 = 0
