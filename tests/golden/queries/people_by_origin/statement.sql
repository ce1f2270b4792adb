SELECT
    referrer AS c0,
    country AS c1,
    count() AS c2,
    max(session_count) AS c3,
    ifNotFinite(ifNull(sumKahan(event_count), 0), NULL) AS c4
FROM (
    SELECT
        argMinIfMerge(visit.first_referrer) AS referrer,
        argMaxIf(visit.country, visit.last_place, visit.country != '') AS country,
        toNullable(toFloat64(uniqExactIf(visit.session_key, visit.session_mark != 0))) AS session_count,
        toNullable(toFloat64(sum(visit.event_count))) AS event_count
    FROM visits AS visit
    WHERE
        website_id = {p0:String} AND
        NOT is_bot AND
        visit.person_mark != 0 AND
        visit.person_mark IN (
            SELECT person_mark
            FROM visits
            WHERE
                website_id = {p0:String} AND
                NOT is_bot AND
                day BETWEEN {p3:Int64} AND {p4:Int64}
        )
    GROUP BY visit.person_key
    HAVING max(visit.last_ms >= toUnixTimestamp64Milli(fromUnixTimestamp64Milli({p1:Int64}, 'UTC')) AND visit.first_ms < toUnixTimestamp64Milli(fromUnixTimestamp64Milli({p2:Int64}, 'UTC')))
)
GROUP BY
    c0,
    c1
ORDER BY
    c2 DESC NULLS LAST,
    c0 ASC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT {p5:UInt64} OFFSET {p6:UInt64}

-- p0 = "web_1"
-- p1 = 1761350400000
-- p2 = 1761523200000
-- p3 = 20386
-- p4 = 20387
-- p5 = 1001
-- p6 = 0
