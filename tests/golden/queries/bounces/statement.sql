SELECT
    uniqExactIf(session_id, session_id != '') AS c0
FROM (
    SELECT
        any(visit.session_id) AS session_id,
        fromUnixTimestamp64Milli(min(visit.first_ms), 'UTC') AS start_time,
        toBool(sum(visit.page_views) <= 1 AND (max(visit.last_ms) - min(visit.first_ms)) < 10000) AS is_bounce
    FROM visits AS visit
    WHERE
        website_id = {p0:String} AND
        NOT is_bot AND
        visit.session_mark != 0 AND
        visit.session_mark IN (
            SELECT session_mark
            FROM visits
            WHERE
                website_id = {p0:String} AND
                NOT is_bot AND
                day BETWEEN {p3:Int64} AND {p4:Int64}
        )
    GROUP BY visit.session_key
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
