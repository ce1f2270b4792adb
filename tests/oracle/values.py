"""A reference evaluator of values: a custom query by the column, searched in Python."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.oracle.check import QueryRejected, check
from tests.oracle.columns import ALIASES, find_column
from tests.oracle.evaluate import JsonText, evaluated
from tests.oracle.rows import Row, Stored

_EVERY_VALUE = 10_000


def evaluate_values(
    parameters: Mapping[str, str], stored: Stored, now_ms: int
) -> tuple[list[Row], bool]:
    """Return the rows of valid parameters, and whether more rows exist.

    Raises `QueryRejected` for a search in a column that has no texts.
    """
    table, field = parameters["table"], parameters["field"]
    search = parameters.get("search", "")
    column = find_column(ALIASES.get(table, table), field)
    assert column is not None
    if search and column.kind not in ("text", "json"):
        raise QueryRejected("INVALID_SEARCH")
    query = {
        "table": table,
        "selects": [{"field": "*", "aggregate": "count", "alias": "count"}],
        "filters": [{"field": field, "operator": "is_set"}],
        "groupBy": [field],
    }
    body = {"query": query, **_days(parameters, now_ms), "limit": _EVERY_VALUE}
    rows = [
        {"value": row[field], "count": row["count"]}
        for row in evaluated(check(body), stored).rows
        if not search or _contains(row[field], search)
    ]
    limit = min(int(parameters.get("limit", "100")), 1000)
    return rows[:limit], len(rows) > limit


def _contains(value: object, search: str) -> bool:
    is_text = isinstance(value, str) and not isinstance(value, JsonText)
    return is_text and re.search(re.escape(search), str(value), re.IGNORECASE) is not None


def _days(parameters: Mapping[str, str], now_ms: int) -> dict[str, str]:
    zone = parameters.get("timezone", "UTC")
    if "startDate" in parameters:
        days = parameters["startDate"], parameters["endDate"]
    else:
        count = int(parameters.get("lastDays", "30"))
        today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(zone)).date()
        days = str(today - timedelta(days=count - 1)), str(today)
    return {"startDate": days[0], "endDate": days[1], "timezone": zone}
