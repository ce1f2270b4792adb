"""The SQL that `/v1/query/sql` shows, as text."""

from headrace.adapters.store.dialect.sql_text import write_sql
from testing.queries import query_body, select, statement_of, where

SQL = r"""-- c0: date (days since 1970 in the timezone of the query)
-- c1: path
-- c2: views
-- c3: last (milliseconds since 1970 in UTC)
WITH
    toUnixTimestamp64Milli(time) AS epoch_ms,
    epoch_ms + 0::Int64 AS wall_ms
SELECT
    toInt32(wall_ms / 86400000) AS c0,
    path AS c1,
    count() AS c2,
    max(toNullable(toUnixTimestamp64Milli(time))) AS c3
FROM events
WHERE
    website_id = 'web_1' AND
    time >= fromUnixTimestamp64Milli(1767225600000::Int64, 'UTC') AND
    time < fromUnixTimestamp64Milli(1769904000000::Int64, 'UTC') AND
    NOT is_bot AND
    event_name IN ['it\'s', 'a\nb']::Array(String) AND
    ifNull(value + 0 > CAST(-1.5, 'Float64'), false)
GROUP BY
    c0,
    c1
ORDER BY
    c0 ASC NULLS LAST,
    c2 DESC NULLS LAST,
    c1 ASC NULLS LAST
LIMIT 4 OFFSET 0
SETTINGS session_timezone = 'UTC', totals_mode = 'before_having'
"""


def test_sql_names_its_columns_and_has_its_values_as_literals() -> None:
    body = query_body(
        select("*", "count", "views"),
        select("time", "latest", "last"),
        filters=[where("event_name", "in", ["it's", "a\nb"]), where("value", "gt", -1.5)],
        group_by=["path"],
        granularity="daily",
        limit=3,
    )
    assert write_sql(statement_of(body)) == SQL


def test_a_name_that_is_no_identifier_stays_within_its_comment() -> None:
    body = query_body(group_by=["properties.a\nSELECT 1"])
    assert write_sql(statement_of(body)).splitlines()[:3] == [
        r'-- c0: "properties.a\nSELECT 1"',
        "-- c1: n",
        "SELECT *",
    ]
