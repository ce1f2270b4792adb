"""Plans, statements and gap filling give the rows of the oracle, over tables filled directly.

`test_query_oracle` makes the same comparison through HTTP. This one is fast and covers queries
only. The results are those of the rows that random cutoffs leave: sessions and profiles too are
made of the rows that remain.
"""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.base.clock import MILLISECONDS_PER_DAY, FixedClock
from headrace.base.errors import InvalidQuery
from headrace.http.routes.formats.query_results import write_json
from headrace.model.catalog import STORED_TABLES
from headrace.model.data_retention import Cutoffs
from testing.examples import examples
from testing.queries import WEBSITE, run_query
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables
from tests.e2e.query.queries import alike
from tests.oracle import QueryRejected, Stored, evaluate_query
from tests.oracle.columns import TABLES
from tests.oracle.rows import Row
from tests.oracle.stored import error_row, event_row, vital_row
from tests.property.generators.chances import SeededRandom, random_strategy
from tests.property.generators.query_cases import Body, arbitrary_bodies
from tests.property.generators.query_data import Item, data_sets
from tests.property.generators.shrink import minimize

DATA_SETS = 5
QUERIES_A_DATA_SET = {"embedded": 40, "server": 40, "replicas": 20}
"""A query over several servers takes five times as long; what it adds is how their rows merge."""

ROWS = {"events": event_row, "performance": vital_row, "errors": error_row}


def stored_of(data: dict[str, list[Item]]) -> Stored:
    """Return the rows that a data set stores, in the form of the oracle."""
    rows = {
        table: [
            ROWS[table](item, arrival=arrival, visitor=item["visitor"][1])
            for arrival, item in enumerate(items)
        ]
        for table, items in data.items()
    }
    return Stored(**rows)


def insert(store: Tables, stored: Stored) -> None:
    for table in STORED_TABLES:
        rows: list[Row] = getattr(stored, table.name)
        texts = {name for name, column in TABLES[table.name].items() if column.kind == "text"}
        store.insert(table, [_as_stored(row, number, texts) for number, row in enumerate(rows)])


def _as_stored(row: Row, number: int, texts: set[str]) -> Row:
    properties: Row = row.get("properties") or {}
    written = json.dumps(properties, ensure_ascii=False, separators=(",", ":"))
    return {
        **{name: value for name, value in row.items() if value is not None or name not in texts},
        "id": _id(number),
        "website_id": WEBSITE,
        "received_at": row.get("received_at", row["time"]),  # not stored for errors and vitals
        "properties": written.encode() if properties else b"",
    }


def _id(number: int) -> bytes:
    """Return an id by arrival; only its first bytes determine the order."""
    return number.to_bytes(8) + (2**64 - 1 - number).to_bytes(8)


def expected_of(body: Body, stored: Stored) -> Any:
    try:
        expected = evaluate_query(body, stored)
    except QueryRejected as refusal:
        return refusal.code
    return [expected.rows, expected.limit, expected.truncated, expected.totals, expected.others]


def got_of(store: Tables, body: Body, cutoffs: Cutoffs, now_ms: int = 0) -> Any:
    try:
        got = run_query(store, body, cutoffs, FixedClock(now_ms))
    except InvalidQuery as refusal:
        return refusal.code.name
    sent = json.loads(write_json(got, request_id="").body)
    return [sent["data"], got.limit, got.truncated, sent.get("totals"), sent.get("others")]


@pytest.mark.parametrize("store", EACH_QUERIED_STORE)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of the data, at a failure
@settings(
    max_examples=examples(DATA_SETS),
    phases=(Phase.generate,),
    suppress_health_check=(
        HealthCheck.too_slow,
        HealthCheck.nested_given,
        HealthCheck.function_scoped_fixture,  # each example creates its own store
    ),
)
@given(data=data_sets)
def test_query_results_match_the_oracle_over_the_rows_that_remain(
    request: pytest.FixtureRequest, store: str, data: dict[str, list[Item]]
) -> None:
    with made_tables(request, store) as tables:
        compare(tables, stored_of(data), QUERIES_A_DATA_SET[store])


def draw_cutoffs(random_source: SeededRandom, stored: Stored) -> Cutoffs:
    """Draw for each table no cutoff, or one at a day of a stored row or the day after it."""

    def of_table(name: str) -> int | None:
        rows: list[Row] = getattr(stored, name)
        days = {row["time"] // MILLISECONDS_PER_DAY + later for row in rows for later in (0, 1)}
        if not days or random_source.has_probability(0.5):
            return None
        day: int = random_source.choice(sorted(days))
        return day * MILLISECONDS_PER_DAY

    return Cutoffs(**{table.name: of_table(table.name) for table in STORED_TABLES})


def cutoffs_within(stored: Stored) -> st.SearchStrategy[Cutoffs]:
    """Return a strategy for cutoffs of these rows."""
    return random_strategy(partial(draw_cutoffs, stored=stored))


def remaining(stored: Stored, cutoffs: Cutoffs) -> Stored:
    """Return the rows that are not expired."""

    def of_table(name: str) -> list[Row]:
        rows: list[Row] = getattr(stored, name)
        cutoff_ms = cutoffs.of_stored_table(name)
        return [row for row in rows if cutoff_ms is None or row["time"] >= cutoff_ms]

    return Stored(**{table.name: of_table(table.name) for table in STORED_TABLES})


def compare(tables: Tables, stored: Stored, queries: int) -> None:
    """Run so many queries over tables that have these rows."""
    insert(tables, stored)
    random_cutoffs = cutoffs_within(stored)

    @settings(
        max_examples=queries,
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow,),
    )
    @given(body=arbitrary_bodies, cutoffs=random_cutoffs)
    def each_query(body: Body, cutoffs: Cutoffs) -> None:
        left = remaining(stored, cutoffs)
        got, expected = got_of(tables, body, cutoffs), expected_of(body, left)
        assert alike(got, expected), shortest_difference(tables, body, cutoffs, left)

    each_query()


def shortest_difference(tables: Tables, body: Body, cutoffs: Cutoffs, left: Stored) -> str:
    """Return the smallest query that still differs, with both results."""

    def is_wrong(body: Body) -> bool:
        return not alike(got_of(tables, body, cutoffs), expected_of(body, left))

    shown = minimize(body, is_wrong)
    got, expected = got_of(tables, shown, cutoffs), expected_of(shown, left)
    return f"{shown}\n{cutoffs}\n got      {got}\n expected {expected}"
