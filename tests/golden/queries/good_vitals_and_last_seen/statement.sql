SELECT
    metric_name AS c0,
    ifNotFinite(countIf(metric_name IN ('LCP', 'FCP', 'INP', 'TTFB', 'CLS') AND ifNull(metric_value <= transform(metric_name, ['LCP', 'FCP', 'INP', 'TTFB', 'CLS'], [2500.0, 1800.0, 200.0, 800.0, 0.1], 0.), false)) / countIf(metric_name IN ('LCP', 'FCP', 'INP', 'TTFB', 'CLS') AND isNotNull(metric_value)), NULL) AS c1,
    ifNotFinite(countIf(metric_name IN ('LCP', 'FCP', 'INP', 'TTFB', 'CLS') AND ifNull(metric_value > transform(metric_name, ['LCP', 'FCP', 'INP', 'TTFB', 'CLS'], [2500.0, 1800.0, 200.0, 800.0, 0.1], 0.) AND metric_value <= transform(metric_name, ['LCP', 'FCP', 'INP', 'TTFB', 'CLS'], [4000.0, 3000.0, 500.0, 1800.0, 0.25], 0.), false)) / countIf(metric_name IN ('LCP', 'FCP', 'INP', 'TTFB', 'CLS') AND isNotNull(metric_value)), NULL) AS c2,
    ifNotFinite(countIf(metric_name IN ('LCP', 'FCP', 'INP', 'TTFB', 'CLS') AND ifNull(metric_value > transform(metric_name, ['LCP', 'FCP', 'INP', 'TTFB', 'CLS'], [4000.0, 3000.0, 500.0, 1800.0, 0.25], 0.), false)) / countIf(metric_name IN ('LCP', 'FCP', 'INP', 'TTFB', 'CLS') AND isNotNull(metric_value)), NULL) AS c3,
    min(toNullable(toUnixTimestamp64Milli(time))) AS c4,
    maxIf(toNullable(toUnixTimestamp64Milli(time)), device_type = {p3:String}) AS c5
FROM performance
WHERE
    website_id = {p0:String} AND
    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND
    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND
    NOT is_bot
GROUP BY
    c0
ORDER BY
    c1 DESC NULLS LAST,
    c0 ASC NULLS LAST
LIMIT {p4:UInt64} OFFSET {p5:UInt64}

-- p0 = "web_1"
-- p1 = 1759276800000
-- p2 = 1761955200000
-- p3 = "mobile"
-- p4 = 1001
-- p5 = 0
