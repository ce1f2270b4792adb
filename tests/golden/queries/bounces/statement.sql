WITH
    known AS (
        SELECT *
        FROM visits
        WHERE
            website_id = {p0:String} AND
            NOT is_bot
    ),
    intDiv(toUnixTimestamp64Milli(start_time), 1000) AS epoch_second,
    roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
    epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
SELECT
    uniqExactIf(session_id, session_id != '') AS c0
FROM (
    SELECT
        visit.session_id AS session_id,
        fromUnixTimestamp64Milli(min(toInt64(bitShiftRight(visit.first_place, 128))), 'UTC') AS start_time,
        toBool(sum(visit.page_views) <= 1 AND (max(toInt64(bitShiftRight(visit.last_place, 128))) - min(toInt64(bitShiftRight(visit.first_place, 128)))) < 10000) AS is_bounce
    FROM known AS visit
    WHERE
        visit.session_id != '' AND
        (visit.day BETWEEN {p8:Int64} AND {p9:Int64} OR (visit.day, visit.session_mark) GLOBAL IN (
            SELECT day, session_mark
            FROM known
            WHERE
                NOT day BETWEEN {p8:Int64} AND {p9:Int64} AND
                session_mark GLOBAL IN (
                    SELECT session_mark
                    FROM known
                    WHERE
                        day BETWEEN {p8:Int64} AND {p9:Int64} AND
                        session_mark != xxHash32('')
                )
        ))
    GROUP BY visit.session_id
)
WHERE
    start_time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    start_time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64}) AND
    is_bounce = {p10:Bool}
LIMIT {p11:UInt64} OFFSET {p12:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = true
-- p4 = 20386
-- p5 = 20387
-- p6 = [1761350400]
-- p7 = [0]
-- p8 = 20386
-- p9 = 20387
-- p10 = true
-- p11 = 1001
-- p12 = 0
