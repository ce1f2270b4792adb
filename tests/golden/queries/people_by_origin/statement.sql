WITH
    visits AS (
        SELECT *
        FROM events
        WHERE
            website_id = {p0:String} AND
            NOT is_bot AND
            anonymous_id != ''
    )
SELECT
    referrer AS c0,
    country AS c1,
    count() AS c2,
    max(session_count) AS c3,
    ifNotFinite(ifNull(sumKahan(event_count), 0), NULL) AS c4
FROM (
    SELECT
        event.anonymous_id AS anonymous_id,
        argMinIf(event.referrer, (event.time, event.id), event.referrer != '') AS referrer,
        argMaxIf(event.country, (event.time, event.id), event.country != '') AS country,
        toNullable(toFloat64(uniqExactIf(event.session_id, event.session_id != ''))) AS session_count,
        toNullable(toFloat64(count())) AS event_count
    FROM visits AS event
    WHERE event.anonymous_id GLOBAL IN (
        WITH
            intDiv(toUnixTimestamp64Milli(time), 1000) AS epoch_second,
            roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
            epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
        SELECT anonymous_id
        FROM visits
        WHERE
            time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
            time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
            ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64})
    )
    GROUP BY event.anonymous_id
)
GROUP BY
    c0,
    c1
ORDER BY
    c2 DESC NULLS LAST,
    c0 ASC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p8:UInt64} OFFSET {p9:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = true
-- p4 = 20386
-- p5 = 20387
-- p6 = [1761350400]
-- p7 = [0]
-- p8 = 1001
-- p9 = 0
