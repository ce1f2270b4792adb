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
            WHERE day BETWEEN {p8:Int64} AND {p9:Int64}
        ) OR visit.anonymous_id GLOBAL IN (
            WITH
                intDiv(toUnixTimestamp64Milli(time), 1000) AS epoch_second,
                roundDown(epoch_second, {p6:Array(Int64)}) AS offset_start,
                epoch_second + transform(offset_start, {p6:Array(Int64)}, {p7:Array(Int64)}, 0) AS wall_second
            SELECT anonymous_id
            FROM events
            WHERE
                website_id = {p0:String} AND
                NOT is_bot AND
                time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
                time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
                ({p3:Bool} OR intDiv(wall_second, 86400) BETWEEN {p4:Int64} AND {p5:Int64}) AND
                (time < fromUnixTimestamp64Milli({p10:Int64}, 'UTC') OR time >= fromUnixTimestamp64Milli({p11:Int64}, 'UTC'))
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
LIMIT {p12:UInt64} OFFSET {p13:UInt64}

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
-- p10 = 1761350400000
-- p11 = 1761523200000
-- p12 = 1001
-- p13 = 0
