WITH
    known AS (
        SELECT *
        FROM visits
        WHERE
            website_id = {p0:String} AND
            NOT is_bot
    )
SELECT
    referrer AS c0,
    country AS c1,
    count() AS c2,
    max(session_count) AS c3,
    ifNotFinite(ifNull(sumKahan(event_count), 0), NULL) AS c4
FROM (
    SELECT
        visit.anonymous_id AS anonymous_id,
        argMinIfMerge(visit.first_referrer) AS referrer,
        argMaxIf(visit.country, visit.last_place, visit.country != '') AS country,
        toNullable(toFloat64(uniqExactIf(visit.session_id, visit.session_id != ''))) AS session_count,
        toNullable(toFloat64(sum(visit.event_count))) AS event_count
    FROM known AS visit
    WHERE
        visit.anonymous_id != '' AND
        (visit.anonymous_id GLOBAL IN (
            SELECT anonymous_id
            FROM known
            WHERE day BETWEEN {p3:Int64} AND {p4:Int64}
        ) OR visit.anonymous_id GLOBAL IN (
            SELECT anonymous_id
            FROM events
            WHERE
                website_id = {p0:String} AND
                NOT is_bot AND
                time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
                time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
                (time < fromUnixTimestamp64Milli({p5:Int64}, 'UTC') OR time >= fromUnixTimestamp64Milli({p6:Int64}, 'UTC'))
        ))
    GROUP BY visit.anonymous_id
)
GROUP BY
    c0,
    c1
ORDER BY
    c2 DESC NULLS LAST,
    c0 ASC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p7:UInt64} OFFSET {p8:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 20386
-- p4 = 20387
-- p5 = 1761350400000
-- p6 = 1761523200000
-- p7 = 1001
-- p8 = 0
