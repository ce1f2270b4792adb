WITH
    known AS (
        SELECT *
        FROM visits
        WHERE
            website_id = {p0:String} AND
            NOT is_bot
    )
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
        (visit.day BETWEEN {p3:Int64} AND {p4:Int64} OR (visit.day, visit.session_mark) GLOBAL IN (
            SELECT day, session_mark
            FROM known
            WHERE
                NOT day BETWEEN {p3:Int64} AND {p4:Int64} AND
                session_mark GLOBAL IN (
                    SELECT session_mark
                    FROM known
                    WHERE
                        day BETWEEN {p3:Int64} AND {p4:Int64} AND
                        session_mark != xxHash32('')
                )
        ))
    GROUP BY visit.session_id
)
WHERE
    start_time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    start_time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    is_bounce = {p5:Bool}
LIMIT {p6:UInt64} OFFSET {p7:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 20386
-- p4 = 20387
-- p5 = true
-- p6 = 1001
-- p7 = 0
