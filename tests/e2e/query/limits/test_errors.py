"""Every rejection of a query body: status, code, and an error that names cause and value."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import requests

from testing.service import Service
from tests.e2e.query.limits.error_cases import (
    Body,
    assert_rejected,
    filtering,
    post_query,
    query_body,
    selecting,
    times,
)
from tests.e2e.query.queries import body, query, select, where

RunQuery = Callable[[Any], requests.Response]


@pytest.fixture
def rejected(service: Service, quiet_website: str) -> RunQuery:
    """Send a body (or raw bytes) with a valid key for a website that has no rows."""
    return partial(post_query, service, quiet_website)


EXACT = [
    pytest.param(
        query_body(groupBy=["pth"]),
        "INVALID_COLUMN",
        'Invalid column "pth" for table "events" (did you mean "path"?)',
        id="column",
    ),
    pytest.param(
        query_body(groupby=["path"]),
        "INVALID_BODY",
        'Invalid request body: unknown key "groupby" (did you mean "groupBy"?)',
        id="unknown key",
    ),
    pytest.param(
        body(query(table="profiles"), granularity="daily"),
        "INVALID_GRANULARITY",
        'Invalid granularity: not available for table "profiles"',
        id="granularity of profiles",
    ),
]


@pytest.mark.parametrize(("sent", "code", "error"), EXACT)
def test_error_message_is_exact(rejected: RunQuery, sent: Body, code: str, error: str) -> None:
    assert assert_rejected(rejected(sent), code) == error


SHAPE = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"{", id="malformed JSON"),
    pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
    pytest.param(b'{"query": "\xff"}', id="not UTF-8"),
    pytest.param(
        b'{"query": {"table": "events\\ud800", "selects": []}}', id="half of a surrogate pair"
    ),
    pytest.param(b"[" * 70 + b"]" * 70, id="nested too deeply"),
    pytest.param([], id="array"),
    pytest.param("query", id="text"),
    pytest.param(None, id="null"),
    pytest.param({}, id="no query"),
    pytest.param(body([]), id="query is an array"),
    pytest.param({**body(), "query": None}, id="query is null"),
    pytest.param({**body(), "query": {}}, id="query is empty"),
    pytest.param(query_body(table=None), id="table is null"),
    pytest.param(query_body(table=5), id="table is a number"),
    pytest.param(query_body(selects=None), id="selects is null"),
    pytest.param(query_body(selects={"field": "*"}), id="selects is an object"),
    pytest.param(query_body(selects=["*"]), id="select is a text"),
    pytest.param(query_body(selects=[{"field": "*"}]), id="select without aggregate"),
    pytest.param(query_body(selects=[{"aggregate": "count"}]), id="select without field"),
    pytest.param(selecting(None, "count"), id="field of a select is null"),
    pytest.param(selecting("*", 5), id="aggregate is a number"),
    pytest.param(selecting("*", "count", alias=5), id="alias is a number"),
    pytest.param(query_body(filters={}), id="filters is an object"),
    pytest.param(query_body(filters=[[]]), id="filter is an array"),
    pytest.param(
        query_body(filters=[{"field": "path", "operator": "eq"}]), id="filter without value"
    ),
    pytest.param(
        query_body(filters=[{"field": "path", "value": "/"}]), id="filter without operator"
    ),
    pytest.param(query_body(filters=[{"operator": "eq", "value": "/"}]), id="filter without field"),
    pytest.param(filtering(5, "eq", "/"), id="field of a filter is a number"),
    pytest.param(filtering("path", None, "/"), id="operator is null"),
    pytest.param(filtering("path", "eq", {"a": 1}), id="value is an object"),
    pytest.param(filtering("path", "in", [["/"]]), id="value has an array inside"),
    pytest.param(query_body(groupBy="path"), id="groupBy is a text"),
    pytest.param(query_body(groupBy=[5]), id="groupBy has a number"),
    pytest.param(query_body(groupBy=[None]), id="groupBy has a null"),
    pytest.param(body(orderBy="path"), id="orderBy is a text"),
    pytest.param(body(orderBy=["n"]), id="orderBy has a text"),
    pytest.param(body(orderBy=[{"direction": "asc"}]), id="orderBy without field"),
    pytest.param(body(orderBy=[{"field": 5}]), id="field of orderBy is a number"),
    pytest.param(body(orderBy=[{"field": "n", "direction": 1}]), id="direction is a number"),
]


@pytest.mark.parametrize("sent", SHAPE)
def test_body_with_another_structure_is_rejected(rejected: RunQuery, sent: Any) -> None:
    assert_rejected(rejected(sent), "INVALID_BODY")


UNKNOWN_KEYS = [
    pytest.param(body(startdate="2025-03-01"), "startdate", "startDate", id="root"),
    pytest.param(query_body(select=[]), "select", "selects", id="query"),
    pytest.param(selecting("*", "count", Alias="y"), "Alias", "alias", id="select"),
    pytest.param(
        query_body(filters=[{**where("path", "eq", "/"), "values": "/"}]),
        "values",
        "value",
        id="filter",
    ),
    pytest.param(
        body(orderBy=[{"field": "n", "directon": "asc"}]), "directon", "direction", id="orderBy"
    ),
]


@pytest.mark.parametrize(("sent", "key", "suggestion"), UNKNOWN_KEYS)
def test_unknown_key_is_rejected_anywhere(
    rejected: RunQuery, sent: Body, key: str, suggestion: str
) -> None:
    assert_rejected(rejected(sent), "INVALID_BODY", key, f'(did you mean "{suggestion}"?)')


def test_key_that_is_close_to_none_gets_no_suggestion(
    rejected: RunQuery,
) -> None:
    error = assert_rejected(rejected(body(zzzzzz=1)), "INVALID_BODY", '"zzzzzz"')
    assert "did you mean" not in error


QUERY_OBJECT = [
    pytest.param(query_body(table="event"), "INVALID_TABLE", ['"event"', '"events"'], id="table"),
    pytest.param(
        query_body(table="Events"), "INVALID_TABLE", ['"Events"'], id="table in another case"
    ),
    pytest.param(query_body(table=""), "INVALID_TABLE", [], id="table of no name"),
    pytest.param(
        selecting("duration", "avg"), "INVALID_COLUMN", ['"duration"', '"events"'], id="select"
    ),
    pytest.param(selecting("Path", "uniq"), "INVALID_COLUMN", ['"Path"'], id="case of a column"),
    pytest.param(selecting("", "count"), "INVALID_COLUMN", ['""'], id="column of no name"),
    pytest.param(
        selecting("properties", "uniq"), "INVALID_COLUMN", ["properties"], id="properties"
    ),
    pytest.param(selecting("properties.", "uniq"), "INVALID_COLUMN", ["properties."], id="no KEY"),
    pytest.param(
        selecting(f"properties.{'k' * 257}", "uniq"), "INVALID_COLUMN", [], id="KEY of 257"
    ),
    pytest.param(
        query_body(table="errors", selects=[select("properties.k", "uniq")]),
        "INVALID_COLUMN",
        ['"properties.k"', '"errors"'],
        id="properties of errors",
    ),
    pytest.param(
        query_body(table="error_spans", selects=[select("pth", "uniq")]),
        "INVALID_COLUMN",
        ['"pth"', '"path"'],
        id="column of another table's name",
    ),
    pytest.param(
        filtering("user", "eq", "x"), "INVALID_COLUMN", ['"user"', '"events"'], id="filter"
    ),
    pytest.param(filtering("*", "eq", "x"), "INVALID_COLUMN", ['"*"'], id="star in a filter"),
    pytest.param(query_body(groupBy=["*"]), "INVALID_COLUMN", ['"*"'], id="star in groupBy"),
    pytest.param(query_body(groupBy=["date"]), "INVALID_COLUMN", ['"date"'], id="groupBy date"),
    pytest.param(query_body(groupBy=["n"]), "INVALID_COLUMN", ['"n"'], id="groupBy an alias"),
    pytest.param(filtering("id", "eq", "x"), "NOT_FILTERABLE", ['"id"'], id="id"),
    pytest.param(filtering("website_id", "eq", "x"), "NOT_FILTERABLE", ['"website_id"'], id="site"),
    pytest.param(
        filtering("stack", "eq", "x", "errors"), "NOT_FILTERABLE", ['"stack"'], id="stack"
    ),
    pytest.param(selecting("path", "sum"), "NOT_AGGREGATABLE", ['"path"'], id="sum of texts"),
    pytest.param(selecting("time", "max"), "NOT_AGGREGATABLE", ['"time"'], id="max of datetimes"),
    pytest.param(
        selecting("is_bot", "avg"), "NOT_AGGREGATABLE", ['"is_bot"'], id="avg of booleans"
    ),
    pytest.param(selecting("id", "min"), "NOT_AGGREGATABLE", ['"id"'], id="min of ids"),
    pytest.param(selecting("*", "sum"), "NOT_AGGREGATABLE", ['aggregatable "*"'], id="sum of star"),
    pytest.param(
        selecting("*", "uniq"), "NOT_AGGREGATABLE", ['aggregatable "*"'], id="uniq of star"
    ),
    pytest.param(
        query_body(table="errors", selects=[select("lineno", "sum")]),
        "NOT_AGGREGATABLE",
        ['"lineno"'],
        id="sum of line numbers",
    ),
    pytest.param(
        query_body(table="errors", selects=[select("colno", "p95")]),
        "NOT_AGGREGATABLE",
        ['"colno"'],
        id="percentile of column numbers",
    ),
    pytest.param(selecting("path", "cout"), "INVALID_AGGREGATE", ['"cout"', '"count"'], id="cout"),
    pytest.param(selecting("value", "median"), "INVALID_AGGREGATE", ['"median"'], id="median"),
    pytest.param(selecting("value", "SUM"), "INVALID_AGGREGATE", ['"SUM"'], id="case of aggregate"),
    pytest.param(query_body(selects=[]), "INVALID_SELECT", [], id="no selects"),
    pytest.param(selecting("*", "count", alias=""), "INVALID_SELECT", [], id="empty alias"),
    pytest.param(selecting("*", "count", alias="a" * 65), "INVALID_SELECT", [], id="alias of 65"),
    pytest.param(
        query_body(selects=[select("*", "count", f"a{n}") for n in range(11)]),
        "TOO_MANY_SELECTS",
        ["10"],
        id="11 selects",
    ),
    pytest.param(
        query_body(filters=times(21, where("path", "eq", "/"))),
        "TOO_MANY_FILTERS",
        ["20"],
        id="21 filters",
    ),
    pytest.param(
        query_body(groupBy=["path", "url", "title", "city", "region", "country"]),
        "TOO_MANY_GROUP_BY",
        ["5"],
        id="6 groupBy",
    ),
]


@pytest.mark.parametrize(("sent", "code", "details"), QUERY_OBJECT)
def test_query_object_is_rejected(
    rejected: RunQuery, sent: Body, code: str, details: list[str]
) -> None:
    assert_rejected(rejected(sent), code, *details)


OPERATORS = [
    pytest.param("path", "equals", "/", id="unknown"),
    pytest.param("path", "EQ", "/", id="another case"),
    pytest.param("path", "", "/", id="empty"),
    pytest.param("value", "contains", "1", id="contains on a number"),
    pytest.param("value", "starts_with", "1", id="starts_with on a number"),
    pytest.param("time", "contains", "2025", id="contains on a datetime"),
    pytest.param("time", "not_contains", "2025", id="not_contains on a datetime"),
    pytest.param("is_bot", "contains", "true", id="contains on a boolean"),
    pytest.param("is_bot", "gt", False, id="gt on a boolean"),
    pytest.param("is_bot", "lte", True, id="lte on a boolean"),
]


@pytest.mark.parametrize(("field", "operator", "value"), OPERATORS)
def test_operator_is_rejected(rejected: RunQuery, field: str, operator: str, value: Any) -> None:
    assert_rejected(
        rejected(filtering(field, operator, value)), "INVALID_OPERATOR", f'"{operator}"'
    )


def test_operator_that_is_close_is_suggested(rejected: RunQuery) -> None:
    sent = filtering("path", "contain", "/")
    assert_rejected(rejected(sent), "INVALID_OPERATOR", '(did you mean "contains"?)')


VALUES = [
    pytest.param("path", "eq", None, id="null"),
    pytest.param("path", "eq", 5, id="number for a text"),
    pytest.param("path", "eq", True, id="boolean for a text"),
    pytest.param("path", "eq", ["/"], id="array for eq"),
    pytest.param("path", "contains", ["/"], id="array for contains"),
    pytest.param("path", "contains", 5, id="number for contains"),
    pytest.param("path", "in", "/", id="scalar for in"),
    pytest.param("path", "not_in", "/", id="scalar for not_in"),
    pytest.param("path", "in", [], id="empty array"),
    pytest.param("path", "in", ["/", None], id="null in an array"),
    pytest.param("path", "in", ["/", 5], id="number in an array of texts"),
    pytest.param("path", "in", times(1001, "/"), id="1001 values"),
    pytest.param("value", "eq", "five", id="text for a number"),
    pytest.param("value", "eq", "", id="empty text for a number"),
    pytest.param("value", "eq", True, id="boolean for a number"),
    pytest.param("value", "eq", None, id="null for a number"),
    pytest.param("value", "in", [1, "x"], id="text in an array of numbers"),
    pytest.param("is_bot", "eq", "true", id="text for a boolean"),
    pytest.param("is_bot", "eq", 1, id="number for a boolean"),
    pytest.param("is_bot", "in", [True, None], id="null in an array of booleans"),
    pytest.param("time", "gt", "yesterday", id="text for a datetime"),
    pytest.param("time", "gt", "2025-02-30", id="impossible date for a datetime"),
    pytest.param("time", "gt", "2025-03-10T25:00:00Z", id="impossible hour for a datetime"),
    pytest.param("time", "gt", "", id="empty text for a datetime"),
    pytest.param("time", "gt", True, id="boolean for a datetime"),
    pytest.param("properties.k", "eq", None, id="null for a property"),
    pytest.param("properties.k", "eq", ["x"], id="array for a property"),
    pytest.param("properties.k", "in", "x", id="scalar for in on a property"),
    pytest.param("properties.k", "in", [], id="empty array for a property"),
]


@pytest.mark.parametrize(("field", "operator", "value"), VALUES)
def test_value_is_rejected(rejected: RunQuery, field: str, operator: str, value: Any) -> None:
    assert_rejected(rejected(filtering(field, operator, value)), "INVALID_VALUE", f'"{field}"')


ROOT = [
    pytest.param({"startDate": None}, "INVALID_START_DATE", id="no startDate"),
    pytest.param({"startDate": 20250301}, "INVALID_START_DATE", id="startDate is a number"),
    pytest.param({"startDate": ["2025-03-01"]}, "INVALID_START_DATE", id="startDate is an array"),
    pytest.param({"startDate": "2025-02-29"}, "INVALID_START_DATE", id="no leap year"),
    pytest.param({"startDate": "2025-13-01"}, "INVALID_START_DATE", id="13th month"),
    pytest.param({"startDate": "2025-3-1"}, "INVALID_START_DATE", id="short startDate"),
    pytest.param({"startDate": "20250301"}, "INVALID_START_DATE", id="basic ISO date"),
    pytest.param({"startDate": "2025-W10-1"}, "INVALID_START_DATE", id="ISO week"),
    pytest.param({"startDate": "2025-03-01T00:00:00Z"}, "INVALID_START_DATE", id="date-time"),
    pytest.param({"startDate": " 2025-03-01"}, "INVALID_START_DATE", id="blank before"),
    pytest.param({"startDate": "2025-03-01\n"}, "INVALID_START_DATE", id="newline behind"),
    pytest.param({"startDate": "２０２５-03-01"}, "INVALID_START_DATE", id="full-width digits"),  # noqa: RUF001 - on purpose
    pytest.param({"startDate": "0000-01-01"}, "INVALID_START_DATE", id="year 0"),
    pytest.param({"startDate": ""}, "INVALID_START_DATE", id="empty startDate"),
    pytest.param({"endDate": None}, "INVALID_END_DATE", id="no endDate"),
    pytest.param({"endDate": "2025-04-31"}, "INVALID_END_DATE", id="31st of April"),
    pytest.param({"endDate": True}, "INVALID_END_DATE", id="endDate is a boolean"),
    pytest.param({"endDate": "2025-02-28"}, "INVALID_END_DATE", id="endDate before startDate"),
    pytest.param({"endDate": "2035-03-01"}, "INVALID_END_DATE", id="ten years later"),
    pytest.param(
        {"startDate": "2024-02-29", "endDate": "2034-02-28"},
        "INVALID_END_DATE",
        id="ten years after a leap day",
    ),
    pytest.param({"timezone": "Mars/Olympus"}, "INVALID_TIMEZONE", id="unknown timezone"),
    pytest.param({"timezone": ""}, "INVALID_TIMEZONE", id="empty timezone"),
    pytest.param({"timezone": 2}, "INVALID_TIMEZONE", id="timezone is a number"),
    pytest.param({"timezone": "+02:00"}, "INVALID_TIMEZONE", id="offset"),
    pytest.param({"timezone": "../UTC"}, "INVALID_TIMEZONE", id="path"),
    pytest.param({"timezone": "/etc/localtime"}, "INVALID_TIMEZONE", id="absolute path"),
    pytest.param({"timezone": "Europe"}, "INVALID_TIMEZONE", id="directory"),
    pytest.param({"timezone": "Europe/Berlin "}, "INVALID_TIMEZONE", id="blank behind"),
    pytest.param({"timezone": "tzdata.zi"}, "INVALID_TIMEZONE", id="file of the database"),
    pytest.param({"granularity": "yearly"}, "INVALID_GRANULARITY", id="yearly"),
    pytest.param({"granularity": "Daily"}, "INVALID_GRANULARITY", id="case of granularity"),
    pytest.param({"granularity": ""}, "INVALID_GRANULARITY", id="empty granularity"),
    pytest.param({"granularity": ["daily"]}, "INVALID_GRANULARITY", id="granularity is an array"),
    pytest.param({"limit": 0}, "INVALID_LIMIT", id="limit 0"),
    pytest.param({"limit": -1}, "INVALID_LIMIT", id="negative limit"),
    pytest.param({"limit": 1.5}, "INVALID_LIMIT", id="fractional limit"),
    pytest.param({"limit": "10"}, "INVALID_LIMIT", id="limit is a text"),
    pytest.param({"limit": True}, "INVALID_LIMIT", id="limit is a boolean"),
    pytest.param({"limit": []}, "INVALID_LIMIT", id="limit is an array"),
    pytest.param({"offset": -1}, "INVALID_OFFSET", id="negative offset"),
    pytest.param({"offset": 1_000_001}, "INVALID_OFFSET", id="offset over a million"),
    pytest.param({"offset": 0.5}, "INVALID_OFFSET", id="fractional offset"),
    pytest.param({"offset": "0"}, "INVALID_OFFSET", id="offset is a text"),
    pytest.param({"offset": False}, "INVALID_OFFSET", id="offset is a boolean"),
    pytest.param({"orderBy": [{"field": "path"}]}, "INVALID_ORDER_BY", id="not an output"),
    pytest.param({"orderBy": [{"field": "date"}]}, "INVALID_ORDER_BY", id="date not an output"),
    pytest.param(
        {"orderBy": [{"field": "n", "direction": "up"}]}, "INVALID_ORDER_BY", id="direction"
    ),
    pytest.param({"orderBy": times(6, {"field": "n"})}, "INVALID_ORDER_BY", id="6 orderBy"),
    pytest.param({"fill": True}, "INVALID_FILL", id="fill without granularity"),
    pytest.param({"fill": "yes", "granularity": "daily"}, "INVALID_FILL", id="fill is a text"),
    pytest.param({"fill": 1, "granularity": "daily"}, "INVALID_FILL", id="fill is a number"),
    pytest.param(
        {"fill": True, "granularity": "hourly", "endDate": "2026-05-01"},
        "INVALID_FILL",
        id="fill of more than 10,000 hours",
    ),
]


ROOT_SCALARS = {
    "startDate": "INVALID_START_DATE",
    "endDate": "INVALID_END_DATE",
    "timezone": "INVALID_TIMEZONE",
    "granularity": "INVALID_GRANULARITY",
    "limit": "INVALID_LIMIT",
    "offset": "INVALID_OFFSET",
    "fill": "INVALID_FILL",
}


@pytest.mark.parametrize("value", [[], ["2025-03-01"], {}, {"a": 1}], ids=str)
@pytest.mark.parametrize(("key", "code"), ROOT_SCALARS.items())
def test_array_or_object_for_a_scalar_of_the_root_has_its_own_cause(
    rejected: RunQuery, key: str, code: str, value: Any
) -> None:
    assert_rejected(rejected({**body(), key: value}), code)


@pytest.mark.parametrize(("root", "code"), ROOT)
def test_root_is_rejected(rejected: RunQuery, root: Body, code: str) -> None:
    sent = {key: value for key, value in {**body(), **root}.items() if value is not None}
    assert_rejected(rejected(sent), code)


@pytest.mark.parametrize("key", ["startDate", "endDate"])
def test_null_date_means_absent(rejected: RunQuery, key: str) -> None:
    code = "INVALID_START_DATE" if key == "startDate" else "INVALID_END_DATE"
    assert_rejected(rejected({**body(), key: None}), code)


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        pytest.param(
            query_body(selects=[select("*", "count", "x"), select("path", "uniq", "x")]),
            "x",
            id="two aliases",
        ),
        pytest.param(
            query_body(selects=[select("path", "uniq"), select("path", "uniq")]),
            "uniq_path",
            id="two default aliases",
        ),
        pytest.param(
            query_body(selects=[select("path", "uniq", "count_all"), select("*", "count")]),
            "count_all",
            id="alias and default alias",
        ),
        pytest.param(
            query_body(selects=[select("*", "count", "path")], groupBy=["path"]),
            "path",
            id="alias and group column",
        ),
        pytest.param(query_body(groupBy=["path", "path"]), "path", id="two group columns"),
        pytest.param(
            body(query(select("*", "count", "date")), granularity="daily"), "date", id="date"
        ),
    ],
)
def test_two_equal_output_names_are_rejected(rejected: RunQuery, sent: Body, name: str) -> None:
    assert_rejected(rejected(sent), "DUPLICATE_OUTPUT_NAME", f'"{name}"')
