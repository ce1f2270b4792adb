SELECT *
FROM (
    SELECT
        c0,
        countForEach(elapsed) AS c1,
        quantileExactInclusiveForEach(0.5)(elapsed) AS c2
    FROM (
        SELECT
            labels[positions[1]] AS c0,
            arrayMap(
                position -> times[position] - times[positions[1]],
                positions
            ) AS elapsed
        FROM (
            SELECT
                *,
                arrayFold(
                    (positions, step) -> arrayPushBack(
                        positions,
                        arrayFirstIndex(
                            (bits, position) -> bitTest(bits, step) AND position > positions[-1],
                            steps,
                            arrayEnumerate(steps)
                        )
                    ),
                    range(1, arrayCount(time -> time != 0, completions)),
                    [arrayFirstIndex(
                        (time, bits) -> bitTest(bits, 0)
                            AND time + {p3:Int64} >= completions[arrayCount(time -> time != 0, completions)],
                        times,
                        steps
                    )]
                ) AS positions
            FROM (
                SELECT
                    *,
                    tupleElement(arrayFold(
                        (reached, step) -> (
                            arrayMap(
                                (time, bits, start) -> if(
                                    bitTest(bits, step) AND start != 0 AND start + {p3:Int64} >= time, start, 0
                                ),
                                times,
                                steps,
                                arrayPushFront(
                                    arrayPopBack(arrayFill(start -> start != 0, reached.1)), toInt64(0)
                                )
                            ),
                            arrayPushBack(reached.2, arrayFirst((time, start) -> start != 0, times, reached.1))
                        ),
                        range(1, 3),
                        (
                            arrayMap((time, bits) -> if(bitTest(bits, 0), time, 0), times, steps),
                            emptyArrayInt64()
                        )
                    ), 2) AS completions
                FROM (
                    SELECT
                        hits.1 AS times,
                        hits.3 AS steps,
                        hits.4 AS labels
                    FROM (
                        WITH
                            position(properties, '\\') + position(properties, ':{"') + position(properties, ',{"') + position(properties, '[{"') = 0 AS properties_flat,
                            simpleJSONExtractRaw(properties, {p5:String}) AS property_0_found,
                            if(
                                bitAnd(properties_flat, ascii(property_0_found) <= 34),
                                nullIf(property_0_found, ''),
                                if(
                                    properties_flat AND (property_0_found IN ('true', 'false') OR toUInt32OrZero(property_0_found) > 0),
                                    property_0_found,
                                    arrayMap(
                                        raw -> arrayMap(
                                            json -> multiIf(
                                                json IN ('', 'null'), NULL,
                                                json = '-0', '0',
                                                startsWith(json, '"'), concat('"', JSONExtractString(json), '"'),
                                                json
                                            ),
                                            [if(length(raw) <= 20, raw, arrayMap(
                                                long -> if(empty(long), raw, arrayFold(
                                                    (text, digits) -> replaceAll(
                                                        replaceAll(text, digits, trim(BOTH '"' FROM digits)),
                                                        concat('"(text)', substring(digits, 2)),
                                                        digits
                                                    ),
                                                    long,
                                                    arrayMap(
                                                        marked -> JSONExtractRaw(marked, {p4:String}),
                                                        [arrayFold(
                                                            (text, digits) -> replaceAll(text, digits, concat('"(text)', substring(digits, 2))),
                                                            long,
                                                            properties
                                                        )]
                                                    )[1]
                                                )),
                                                [arrayDistinct(extractAll(raw, '"-?[1-9][0-9]{18,}"'))]
                                            )[1])]
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
                            ) * 2) AS bits
                        SELECT
                            arraySort(groupArray((toUnixTimestamp64Milli(time), id, bits, property_0))) AS hits
                        FROM events
                        WHERE
                            website_id = {p0:String} AND
                            time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
                            time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
                            session_key != 0 AND
                            bits != 0
                        GROUP BY session_key
                        HAVING max(bitTest(bits, 0)) = 1
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
-- p3 = 60000
-- p4 = "plan"
-- p5 = "plan"
-- p6 = "/cart"
-- p7 = "purchase"
-- p8 = 1001
