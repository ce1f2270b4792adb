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
    uniqExactIf(session_id, session_id != '') AS c0
FROM (
    SELECT
        event.session_id AS session_id,
        min(event.time) AS start_time,
        toBool(countIf(event.event_name IN ('screen_view', 'pageview', 'page_view')) <= 1 AND (toUnixTimestamp64Milli(max(event.time)) - toUnixTimestamp64Milli(min(event.time))) < 10000) AS is_bounce
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
    ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64}) AND
    is_bounce = {p8:Bool}
LIMIT {p9:UInt64} OFFSET {p10:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = true
-- p4 = 20386
-- p5 = 20387
-- p6 = [1761350400]
-- p7 = [0]
-- p8 = true
-- p9 = 1001
-- p10 = 0
