WITH
    visits AS (
        SELECT *
        FROM events
        WHERE
            website_id = {p0:String} AND
            NOT is_bot AND
            session_id != ''
    ),
    intDiv(toUnixTimestamp64Milli(start_time), 1000) AS epoch_second,
    roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
    epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
SELECT
    intDiv(wall_second, 86400) AS c0,
    entry_path AS c1,
    is_bounce AS c2,
    count() AS c3,
    ifNotFinite(sumKahan(duration) / count(duration), NULL) AS c4,
    ifNotFinite(ifNull(sumKahan(page_views), 0), NULL) AS c5
FROM (
    SELECT
        event.session_id AS session_id,
        argMinIf(event.path, (event.time, event.id), event.path != '') AS entry_path,
        min(event.time) AS start_time,
        toBool(countIf(event.event_name IN ('screen_view', 'pageview', 'page_view')) <= 1 AND (toUnixTimestamp64Milli(max(event.time)) - toUnixTimestamp64Milli(min(event.time))) < 10000) AS is_bounce,
        toNullable(toFloat64((toUnixTimestamp64Milli(max(event.time)) - toUnixTimestamp64Milli(min(event.time))) / 1000)) AS duration,
        toNullable(toFloat64(countIf(event.event_name IN ('screen_view', 'pageview', 'page_view')))) AS page_views
    FROM visits AS event
    WHERE event.session_id GLOBAL IN (
        WITH
            intDiv(toUnixTimestamp64Milli(time), 1000) AS epoch_second,
            roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
            epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
        SELECT session_id
        FROM visits
        WHERE
            time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
            time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
            ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64})
    )
    GROUP BY event.session_id
)
WHERE
    start_time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    start_time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64})
GROUP BY
    c0,
    c1,
    c2
ORDER BY
    c0 ASC NULLS LAST,
    c3 DESC NULLS LAST,
    c1 ASC NULLS LAST,
    c2 ASC NULLS LAST
LIMIT {p8:UInt64} OFFSET {p9:UInt64}

-- p0 = "web_1"
-- p1 = 1761256800000
-- p2 = 1761519600000
-- p3 = true
-- p4 = 20385
-- p5 = 20387
-- p6 = [1761256800, 1761440400]
-- p7 = [7200, 3600]
-- p8 = 1001
-- p9 = 0
