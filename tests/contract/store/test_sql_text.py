"""The SQL that `/v1/query/sql` shows, run in every store."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from headrace.adapters.store.dialect.sql_text import write_sql
from headrace.model.catalog import EVENTS
from headrace.model.plan import CompiledQuery
from headrace.ports.store import Dialect
from headrace.query.funnel.check import check_funnel, decode_funnel
from headrace.query.funnel.compile import compile_funnel
from headrace.query.retention.check import check_retention, decode_retention
from headrace.query.retention.compile import compile_retention
from testing.queries import WEBSITE, as_bytes, query_body, select, statement_of, where
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables

JANUARY_5 = 1_767_614_400_000
AWKWARD = "it's \\ 1\t\n-- {p0:String} é😀"

BODIES: Mapping[str, Any] = {
    "texts, numbers and lists": query_body(
        select("*", "count", "n"),
        select("value", "sum", "total"),
        filters=[
            where("event_name", "in", ["paid", AWKWARD]),
            where("value", "gt", -1.5),
            where("properties.plan", "ne", AWKWARD),
        ],
        group_by=["event_name"],
        orderBy=[{"field": "total", "direction": "desc"}],
    ),
    "days of a zone, compared": query_body(
        select("*", "count", "n"),
        group_by=["path"],
        granularity="daily",
        timezone="Europe/Berlin",
        compare="previous_period",
    ),
    "top groups, and all others": query_body(
        select("*", "count", "n"),
        group_by=["path"],
        granularity="weekly",
        top=1,
        others=True,
    ),
    "a count of the rollup": query_body(),
}

STEPS = [
    {"filters": [where("event_name", "in", ["paid", AWKWARD])]},
    {"filters": [where("path", "eq", "/1")]},
]
JANUARY = {"startDate": "2026-01-01", "endDate": "2026-01-31"}


def _funnel(dialect: Dialect) -> CompiledQuery:
    body = as_bytes({"steps": STEPS, "window": 86_400, **JANUARY})
    return compile_funnel(check_funnel(decode_funnel(body), WEBSITE, now_ms=0), dialect)


def _retention(dialect: Dialect) -> CompiledQuery:
    any_event: Any = {"filters": []}
    body = as_bytes(
        {"first": any_event, "return": any_event, "granularity": "daily", "periods": 3, **JANUARY}
    )
    return compile_retention(check_retention(decode_retention(body), WEBSITE, now_ms=0), dialect)


QUERIES: Mapping[str, Callable[[Dialect], CompiledQuery]] = {
    **{name: partial(statement_of, body) for name, body in BODIES.items()},
    "a funnel": _funnel,
    "retention": _retention,
}


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def filled(request: pytest.FixtureRequest) -> Iterator[Tables]:
    with made_tables(request, request.param) as store:
        store.insert(
            EVENTS,
            [
                {
                    "id": number.to_bytes(16, "big"),
                    "website_id": WEBSITE,
                    "event_name": ("paid", AWKWARD, "view")[number % 3],
                    "time": JANUARY_5 + number * 7_200_000,
                    "path": f"/{number % 4}",
                    "anonymous_id": f"visitor {number % 5}",
                    "value": number - 2.5,
                    "properties": b'{"plan":"pro"}',
                }
                for number in range(40)
            ],
        )
        yield store


@pytest.mark.parametrize("compile_it", QUERIES.values(), ids=QUERIES)
def test_written_sql_gives_the_rows_of_the_query(
    filled: Tables, compile_it: Callable[[Dialect], CompiledQuery]
) -> None:
    query = compile_it(filled.dialect)

    rows = filled.rows(f"SELECT * FROM (\n{write_sql(query)})")

    assert rows
    assert sorted(rows, key=repr) == sorted(filled.select(query), key=repr)
