"""Valid query bodies at the limits of the rules, and which of two errors is reported."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
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
from tests.e2e.query.queries import body, select, where

RunQuery = Callable[[Any], requests.Response]


@pytest.fixture
def result(service: Service, quiet_website: str) -> RunQuery:
    """Send a body (or raw bytes) with a valid key for a website that has no rows."""
    return partial(post_query, service, quiet_website)


WITHIN = [
    pytest.param(
        query_body(selects=[select("*", "count", f"a{n}") for n in range(10)]), id="10 selects"
    ),
    pytest.param(query_body(filters=times(20, where("path", "eq", "/"))), id="20 filters"),
    pytest.param(query_body(groupBy=["path", "url", "title", "city", "region"]), id="5 groupBy"),
    pytest.param(filtering("path", "in", [f"/{n}" for n in range(1000)]), id="1000 values"),
    pytest.param(filtering("time", "lt", 253_402_300_799_999), id="last millisecond of all"),
    pytest.param(filtering("time", "lt", "9999-12-31T23:59:59.999Z"), id="the same as a text"),
    pytest.param(filtering("time", "gt", "0001-01-01"), id="first moment of all"),
    pytest.param(selecting("*", "count", alias="a" * 64), id="alias of 64"),
    pytest.param(selecting("*", "count", alias='`"\\ \n\t🦆'), id="alias of awkward characters"),
    pytest.param(selecting("*", "count", alias="\0"), id="alias NUL"),
    pytest.param(selecting("properties.\0", "uniq"), id="KEY NUL"),
    pytest.param(selecting("*", "count", alias="date"), id="alias date without granularity"),
    pytest.param(selecting(f"properties.{'k' * 256}", "uniq"), id="KEY of 256"),
    pytest.param(selecting("properties.'`\"\\", "p99"), id="KEY of awkward characters"),
    pytest.param(query_body(filters=None, groupBy=None), id="null in optional keys of the query"),
    pytest.param(selecting("*", "count", alias=None), id="null alias"),
    pytest.param(body(orderBy=[{"field": "n", "direction": None}]), id="null direction"),
    pytest.param(body(orderBy=times(5, {"field": "n"})), id="5 orderBy"),
    pytest.param(body(limit=1_000_000_000), id="limit over the maximum"),
    pytest.param(body(offset=1_000_000), id="greatest offset"),
    pytest.param(body(limit=10.0, offset=10.0), id="whole numbers with a fraction of zero"),
    pytest.param(body(fill=False), id="fill false without granularity"),
    pytest.param(body(endDate="2035-02-28"), id="ten years but a day"),
    pytest.param(
        body(startDate="2024-02-29", endDate="2034-02-27"), id="ten years but a day from a leap day"
    ),
    pytest.param(body(startDate="0001-01-01", endDate="0001-01-02"), id="first days of all"),
    pytest.param(body(startDate="9999-12-30", endDate="9999-12-31"), id="last days of all"),
    pytest.param(
        body(startDate="0001-01-01", endDate="0001-01-01", timezone="Asia/Tokyo"),
        id="first day east of Greenwich",
    ),
    pytest.param(
        body(startDate="9999-12-31", endDate="9999-12-31", timezone="America/New_York"),
        id="last day west of Greenwich",
    ),
    pytest.param(body(timezone="Etc/GMT+12"), id="timezone behind"),
    pytest.param(body(timezone="US/Pacific"), id="old name of a timezone"),
    pytest.param(
        body(granularity="hourly", fill=True, startDate="2025-01-01", endDate="2026-02-20"),
        id="fill of 9,984 hours",
    ),
    pytest.param(
        {**body(), "timezone": None, "granularity": None, "limit": None, "offset": None},
        id="null in scalars of the root",
    ),
    pytest.param({**body(), "fill": None, "orderBy": None}, id="null in extensions of the root"),
]


@pytest.mark.parametrize("sent", WITHIN)
def test_query_at_the_limits_is_accepted(result: RunQuery, sent: Body) -> None:
    response = result(sent)
    assert (response.status_code, response.json()["success"]) == (200, True), response.text


# Order of checks.


def _change(*path: str, to: Any) -> Callable[[Body], None]:
    def change(sent: Body) -> None:
        *parents, last = path
        for parent in parents:
            sent = sent[parent]
        sent[last] = to

    return change


ERRORS: list[tuple[str, Callable[[Body], None]]] = [
    ("INVALID_BODY", _change("unknown", to=1)),
    ("INVALID_TABLE", _change("query", "table", to="nope")),
    ("INVALID_AGGREGATE", _change("query", "selects", to=[select("path", "nope")])),
    ("INVALID_OPERATOR", _change("query", "filters", to=[where("path", "nope", "x")])),
    ("INVALID_COLUMN", _change("query", "groupBy", to=["nope"])),
    ("INVALID_START_DATE", _change("startDate", to="nope")),
    ("INVALID_END_DATE", _change("endDate", to="nope")),
    ("INVALID_TIMEZONE", _change("timezone", to="nope")),
    ("INVALID_GRANULARITY", _change("granularity", to="nope")),
    ("INVALID_LIMIT", _change("limit", to="nope")),
    ("INVALID_OFFSET", _change("offset", to="nope")),
    ("INVALID_ORDER_BY", _change("orderBy", to=[{"field": "nope"}])),
]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, id=f"{first[0]} before {second[0]}")
        for first, second in combinations(ERRORS, 2)
    ],
)
def test_the_first_of_two_errors_is_reported(
    result: RunQuery,
    first: tuple[str, Callable[[Body], None]],
    second: tuple[str, Callable[[Body], None]],
) -> None:
    sent = body()
    second[1](sent)
    first[1](sent)
    assert_rejected(result(sent), first[0])


BAD_SELECT = select("nope", "count")
BAD_FILTER = where("nope", "eq", "x")
IN_LISTS = [
    pytest.param(
        query_body(selects=times(11, BAD_SELECT)), "TOO_MANY_SELECTS", id="count of selects"
    ),
    pytest.param(
        query_body(filters=times(21, BAD_FILTER)), "TOO_MANY_FILTERS", id="count of filters"
    ),
    pytest.param(query_body(groupBy=times(6, "nope")), "TOO_MANY_GROUP_BY", id="count of groupBy"),
    pytest.param(
        query_body(selects=[select("path", "nope"), BAD_SELECT]),
        "INVALID_AGGREGATE",
        id="first select",
    ),
    pytest.param(
        query_body(filters=[where("path", "nope", "x"), BAD_FILTER]),
        "INVALID_OPERATOR",
        id="first filter",
    ),
    pytest.param(
        query_body(selects=[*times(10, BAD_SELECT), "text"]),
        "INVALID_BODY",
        id="shape before count",
    ),
    pytest.param(
        query_body(selects=[select("path", "sum")], filters=times(21, BAD_FILTER)),
        "NOT_AGGREGATABLE",
        id="selects before the count of filters",
    ),
]


@pytest.mark.parametrize(("sent", "code"), IN_LISTS)
def test_list_length_is_checked_before_its_items(result: RunQuery, sent: Body, code: str) -> None:
    assert_rejected(result(sent), code)
