"""The ten queries: as API requests, and as an experienced ClickHouse user writes them in SQL.

The hand-written SQL is exactly as precise as the result requires: exact visitor counts, days of the
caller's timezone, whole sessions, bots excluded, a defined order of rows.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

ZONE = "Europe/Berlin"


class DateRange(Struct, frozen=True):
    """Whole days, both included, as the query names them; `end` is the day after the last."""

    first: str
    last: str
    end: str


class BenchmarkQuery(Struct, frozen=True):
    """A query in both forms. `columns` are the result's names in the order of the SQL's columns.

    The SQL has placeholders for `{website}`, `{start}`, `{end}` and `{limit}`; `table` and all
    other fields are those of the API.
    """

    name: str
    query: Mapping[str, Any]
    columns: tuple[str, ...]
    sql: str
    limit: int = 1000
    extra: Mapping[str, Any] = {}

    def body(self, date_range: DateRange) -> dict[str, Any]:
        """Return the request body."""
        return {
            "query": self.query,
            "startDate": date_range.first,
            "endDate": date_range.last,
            "limit": self.limit,
            **self.extra,
        }

    def statement(self, website: str, date_range: DateRange) -> str:
        """Return the equivalent hand-written SQL."""
        zone = self.extra.get("timezone", "UTC")
        return self.sql.format(
            website=website,
            start=f"toDateTime64('{date_range.first}', 3, '{zone}')",
            end=f"toDateTime64('{date_range.end}', 3, '{zone}')",
            limit=self.limit,
        )


_ROWS = "website_id = '{website}' AND time >= {start} AND time < {end} AND NOT is_bot"
_COUNT = {"field": "*", "aggregate": "count", "alias": "n"}


def _select(aggregate: str, field: str) -> dict[str, str]:
    return {"field": field, "aggregate": aggregate, "alias": "n"}


QUERIES: tuple[BenchmarkQuery, ...] = (
    BenchmarkQuery(
        "count of a month",
        {"table": "events", "selects": [_COUNT]},
        ("n",),
        f"SELECT count() FROM events WHERE {_ROWS} LIMIT {{limit}}",
    ),
    BenchmarkQuery(
        "top pages with exact visitors",
        {"table": "events", "selects": [_select("uniq", "anonymous_id")], "groupBy": ["path"]},
        ("path", "n"),
        f"SELECT path, uniqExactIf(anonymous_id, anonymous_id != '') AS n FROM events WHERE {_ROWS}"
        " GROUP BY path ORDER BY n DESC, path LIMIT {limit}",
    ),
    BenchmarkQuery(
        "country by day in a zone",
        {"table": "events", "selects": [_COUNT], "groupBy": ["country"]},
        ("date", "country", "n"),
        f"SELECT toString(toDate(time, '{ZONE}')) AS day, country, count() AS n FROM events"
        f" WHERE {_ROWS} GROUP BY day, country ORDER BY day, n DESC, country LIMIT {{limit}}",
        limit=9000,
        extra={"granularity": "daily", "timezone": ZONE},
    ),
    BenchmarkQuery(
        "country by hour",
        {"table": "events", "selects": [_COUNT], "groupBy": ["country"]},
        ("date", "country", "n"),
        "SELECT toString(toStartOfHour(time, 'UTC')) AS hour, country, count() AS n FROM events"
        f" WHERE {_ROWS} GROUP BY hour, country ORDER BY hour, n DESC, country LIMIT {{limit}}",
        limit=9000,
        extra={"granularity": "hourly"},
    ),
    BenchmarkQuery(
        "errors by message",
        {"table": "errors", "selects": [_COUNT], "groupBy": ["message"]},
        ("message", "n"),
        f"SELECT message, count() AS n FROM errors WHERE {_ROWS}"
        " GROUP BY message ORDER BY n DESC, message LIMIT {limit}",
    ),
    BenchmarkQuery(
        "a contains filter",
        {
            "table": "events",
            "selects": [_COUNT],
            "filters": [{"field": "path", "operator": "contains", "value": "quarry-ridge"}],
        },
        ("n",),
        f"SELECT count() FROM events WHERE {_ROWS} AND position(path, 'quarry-ridge') > 0"
        " LIMIT {limit}",
    ),
    BenchmarkQuery(
        "top 1,000 of anonymous_id",
        {"table": "events", "selects": [_COUNT], "groupBy": ["anonymous_id"]},
        ("anonymous_id", "n"),
        f"SELECT anonymous_id, count() AS n FROM events WHERE {_ROWS}"
        " GROUP BY anonymous_id ORDER BY n DESC, anonymous_id LIMIT {limit}",
    ),
    BenchmarkQuery(
        "sum of a property by another",
        {
            "table": "events",
            "selects": [_select("sum", "properties.amount")],
            "groupBy": ["properties.plan"],
        },
        ("properties.plan", "n"),
        "SELECT JSONExtract(properties, 'plan', 'Nullable(String)') AS plan,"
        f" sum(JSONExtractFloat(properties, 'amount')) AS n FROM events WHERE {_ROWS}"
        " GROUP BY plan ORDER BY n DESC, plan LIMIT {limit}",
    ),
    BenchmarkQuery(
        "p75 of LCP by path",
        {
            "table": "performance",
            "selects": [_select("p75", "metric_value")],
            "groupBy": ["path"],
            "filters": [{"field": "metric_name", "operator": "eq", "value": "LCP"}],
        },
        ("path", "n"),
        f"SELECT path, quantileExactInclusive(0.75)(metric_value) AS n FROM performance"
        f" WHERE {_ROWS} AND metric_name = 'LCP'"
        " GROUP BY path ORDER BY n DESC, path LIMIT {limit}",
    ),
    BenchmarkQuery(
        "average session duration by country",
        {"table": "sessions", "selects": [_select("avg", "duration")], "groupBy": ["country"]},
        ("country", "n"),
        "SELECT country, avg(ms) / 1000 AS n FROM (SELECT min(time) AS started,"
        " dateDiff('millisecond', started, max(time)) AS ms,"
        " argMinIf(events.country, (time, id), events.country != '') AS country FROM events"
        " WHERE website_id = '{website}' AND NOT is_bot AND session_id != '' AND session_id IN"
        f" (SELECT session_id FROM events WHERE {_ROWS} AND session_id != '')"
        " GROUP BY session_id HAVING started >= {start} AND started < {end})"
        " GROUP BY country ORDER BY n DESC, country LIMIT {limit}",
    ),
)
