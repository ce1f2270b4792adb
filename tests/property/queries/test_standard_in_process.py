"""Standard queries give what their custom queries give, and what the oracle gives for these."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.base.clock import FixedClock
from headrace.base.errors import InvalidQuery
from headrace.http.routes.formats.query_results import write_json
from headrace.http.routes.formats.standard_results import write_standard
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.query.service import QueryService
from headrace.query.standard.service import StandardService
from testing.examples import examples
from testing.queries import WEBSITE, as_bytes, execution_over
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables
from tests.e2e.query.queries import alike
from tests.oracle import QueryRejected, Stored, evaluate_query
from tests.oracle.rows import Row
from tests.oracle.standard import Body, evaluate_standard
from tests.property.generators.chances import SeededRandom, random_strategy
from tests.property.generators.query_data import Item, data_sets
from tests.property.generators.standard import standard_queries
from tests.property.queries.test_results_in_process import insert, stored_of

DATA_SETS, QUERIES_A_DATA_SET = 4, {"embedded": 25, "server": 25, "replicas": 10}
WITH_CUSTOM_QUERIES = "embedded"
"""The store on which the custom queries run, too.

On the others both kinds of queries are compared with the oracle: the custom ones in
`test_results_in_process`.
"""

_AFTER_AN_EVENT_MS = (0, 1, 299_999, 300_000, 300_001, -1)
SETTINGS: dict[str, Any] = {
    "deadline": None,
    "phases": (Phase.generate,),
    "suppress_health_check": (
        HealthCheck.too_slow,
        HealthCheck.nested_given,
        HealthCheck.function_scoped_fixture,  # each example creates its own store
    ),
}


def got_of(tables: Tables, body: Body, now_ms: int, cutoffs: Cutoffs = NO_CUTOFFS) -> Any:
    service = StandardService(execution_over(tables, FixedClock(now_ms), cutoffs))
    try:
        result = asyncio.run(service.run(WEBSITE, as_bytes(body)))
    except InvalidQuery as refusal:
        return refusal.code.name
    return json.loads(write_standard(result, request_id="").body)["data"]


def by_custom_queries(tables: Tables, body: Body, now_ms: int) -> Any:
    service = QueryService(execution_over(tables, FixedClock(now_ms)))

    def run(custom: Body) -> list[Row]:
        result = asyncio.run(service.run(WEBSITE, as_bytes(custom)))
        rows: list[Row] = json.loads(write_json(result, request_id="").body)["data"]
        return rows

    return evaluate_standard(body, run, now_ms)


def by_oracle(stored: Stored, body: Body, now_ms: int) -> Any:
    """Return the data, or the code of the first refusal: filters are checked before buckets."""

    def run(custom: Body) -> list[Row]:
        return evaluate_query(custom, stored).rows

    data: dict[str, Any] = {}
    refusals: list[str] = []
    for name in body["types"]:
        try:
            data |= evaluate_standard({**body, "types": [name]}, run, now_ms)
        except QueryRejected as refusal:
            refusals.append(refusal.code)
    if set(refusals) == {"INVALID_FILL"}:
        return "INVALID_GRANULARITY"
    return next((code for code in refusals if code != "INVALID_FILL"), data)


def draw_time_near(random_source: SeededRandom, stored: Stored) -> int:
    """Draw a time at which the last event of some visitor is just recent enough, or is not."""
    times = [row["time"] for row in stored.events] or [0]
    return int(random_source.choice(times)) + random_source.choice(_AFTER_AN_EVENT_MS)


def times_near(stored: Stored) -> st.SearchStrategy[int]:
    """Return a strategy for times near the events."""
    return random_strategy(partial(draw_time_near, stored=stored))


@pytest.mark.parametrize("store", EACH_QUERIED_STORE)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of the data, at a failure
@settings(max_examples=examples(DATA_SETS), **SETTINGS)
@given(data=data_sets)
def test_every_type_equals_its_custom_query_and_the_oracle(
    request: pytest.FixtureRequest, store: str, data: dict[str, list[Item]]
) -> None:
    stored = stored_of(data)
    with made_tables(request, store) as tables:
        insert(tables, stored)

        @settings(max_examples=QUERIES_A_DATA_SET[store], **SETTINGS)
        @given(body=standard_queries, now_ms=times_near(stored))
        def each_query(body: Body, now_ms: int) -> None:
            got, expected = got_of(tables, body, now_ms), by_oracle(stored, body, now_ms)
            assert alike(got, expected), f"{body}\n got      {got}\n expected {expected}"
            if isinstance(got, dict) and store == WITH_CUSTOM_QUERIES:
                assert alike(by_custom_queries(tables, body, now_ms), got), f"{body}"

        each_query()
