"""Funnels and retention give the rows of the oracle, over tables filled directly."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from headrace.base.clock import FixedClock
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.query.funnel.service import FunnelService
from headrace.query.retention.service import RetentionService
from testing.examples import examples
from testing.queries import WEBSITE, as_bytes, execution_over
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables
from tests.e2e.query.queries import alike
from tests.oracle import Stored
from tests.oracle.funnel import evaluate_funnel
from tests.oracle.retention import evaluate_retention
from tests.oracle.rows import Row
from tests.property.generators.paths import Body, funnels, path_data, retentions
from tests.property.queries.test_results_in_process import insert

NOW_MS = 1_764_547_199_000  # 2025-11-30T23:59:59Z
DATA_SETS, QUERIES_A_DATA_SET = 4, 20
SETTINGS: dict[str, Any] = {
    "deadline": None,
    "phases": (Phase.generate,),
    "suppress_health_check": (
        HealthCheck.too_slow,
        HealthCheck.nested_given,
        HealthCheck.function_scoped_fixture,  # each example creates its own store
    ),
}


def funnel_rows(tables: Tables, body: Body, cutoffs: Cutoffs = NO_CUTOFFS) -> list[Row]:
    service = FunnelService(execution_over(tables, FixedClock(NOW_MS), cutoffs))
    result = asyncio.run(service.run(WEBSITE, as_bytes(body)))
    return [dict(zip(result.names, row, strict=True)) for row in result.rows]


def compare(got: list[Row], expected: list[Row], body: Body) -> None:
    assert alike(got, expected), f"{body}\n got      {got}\n expected {expected}"


def retention_rows(tables: Tables, body: Body, cutoffs: Cutoffs = NO_CUTOFFS) -> list[Row]:
    service = RetentionService(execution_over(tables, FixedClock(NOW_MS), cutoffs))
    result = asyncio.run(service.run(WEBSITE, as_bytes(body)))
    return [dict(zip(result.names, row, strict=True)) for row in result.rows]


@pytest.mark.parametrize("store", EACH_QUERIED_STORE)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of the data, at a failure
@settings(max_examples=examples(DATA_SETS), **SETTINGS)
@given(stored=path_data)
def test_funnels_and_retention_match_the_oracle(
    request: pytest.FixtureRequest, store: str, stored: Stored
) -> None:
    with made_tables(request, store) as tables:
        insert(tables, stored)

        @settings(max_examples=QUERIES_A_DATA_SET, **SETTINGS)
        @given(body=funnels)
        def each_funnel(body: Body) -> None:
            compare(funnel_rows(tables, body), evaluate_funnel(body, stored), body)

        @settings(max_examples=QUERIES_A_DATA_SET, **SETTINGS)
        @given(body=retentions)
        def each_retention(body: Body) -> None:
            expected = evaluate_retention(body, stored, NOW_MS)
            compare(retention_rows(tables, body), expected, body)

        each_funnel()
        each_retention()
