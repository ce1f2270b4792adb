"""Whole days from the daily rollup give the rows of the oracle, as the events themselves do.

The data are on both sides of each rule: ranges that divide days, clock changes, repeated and late
events, expired rows, bots. Each query also runs over the events alone and must give the same bytes.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from headrace.base.errors import InvalidQuery
from headrace.model.data_retention import Cutoffs
from headrace.model.plan import QueryPlan
from headrace.query.sql.sources import tables as source_tables
from headrace.query.sql.sources.daily_rows import reads_daily_rows
from testing.examples import examples
from testing.queries import plan_of
from testing.tables import Tables, made_tables
from tests.e2e.query.queries import alike
from tests.oracle import Stored
from tests.property.generators.query_data import Item, data_sets
from tests.property.generators.rollup_cases import Body, dashboard_bodies
from tests.property.queries.test_results_in_process import (
    cutoffs_within,
    expected_of,
    got_of,
    insert,
    remaining,
    stored_of,
)

DATA_SETS = 2
QUERIES_A_DATA_SET = 30


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
def test_rollup_and_events_give_the_rows_of_the_oracle(
    request: pytest.FixtureRequest, data: dict[str, list[Item]]
) -> None:
    with made_tables(request, "embedded") as tables:
        compare(tables, stored_of(data), QUERIES_A_DATA_SET)


def compare(tables: Tables, stored: Stored, queries: int) -> None:
    insert(tables, stored)
    random_cutoffs = cutoffs_within(stored)

    def read_events(_plan: QueryPlan, *, is_distributed: bool) -> bool:
        del is_distributed
        return False

    @settings(
        max_examples=queries,
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow,),
    )
    @given(body=dashboard_bodies, cutoffs=random_cutoffs)
    def each_query(body: Body, cutoffs: Cutoffs) -> None:
        expected = expected_of(body, remaining(stored, cutoffs))
        got = got_of(tables, body, cutoffs)
        assert alike(got, expected), f"{body}\n{cutoffs}\n got      {got}\n expected {expected}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source_tables, "reads_daily_rows", read_events)
            assert got_of(tables, body, cutoffs) == got

    each_query()


def test_most_of_the_drawn_queries_read_the_rollup() -> None:
    shares: list[bool] = []

    @settings(max_examples=200, phases=(Phase.generate,), database=None)
    @given(body=dashboard_bodies)
    def each_body(body: Body) -> None:
        try:
            plan = plan_of(body)
        except InvalidQuery:
            return
        shares.append(reads_daily_rows(plan, is_distributed=False))

    each_body()
    assert 0.3 < sum(shares) / len(shares) < 0.9
