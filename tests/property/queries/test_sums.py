"""Sums of doubles differ from the exact sum by no more than the reference says."""

import math
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.catalog import Aggregate
from headrace.query.sql.aggregates import NUMBER_AGGREGATES
from testing.chdb import FreshStore
from testing.examples import examples

MAX_ERROR = 2.0**-50
SUM = NUMBER_AGGREGATES[Aggregate.SUM].write((), "number")
AVG = NUMBER_AGGREGATES[Aggregate.AVG].write((), "number")
FINITE = st.floats(-1e300, 1e300, allow_nan=False, allow_infinity=False)
AMOUNTS = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)


def aggregate(store: FreshStore, sql: str, numbers: Sequence[float]) -> float:
    rows = f"(SELECT arrayJoin({[float(number) for number in numbers]}) AS number)"
    ((value,),) = store.rows(f"SELECT {sql} FROM {rows}")
    return float(value)


@settings(max_examples=examples(60))
@given(numbers=st.lists(FINITE | AMOUNTS, min_size=1, max_size=60))
def test_error_of_a_sum_is_within_its_bound(
    chdb_store_of_module: FreshStore, numbers: list[float]
) -> None:
    bound = MAX_ERROR * math.fsum(map(abs, numbers))
    assert abs(aggregate(chdb_store_of_module, SUM, numbers) - math.fsum(numbers)) <= bound
    mean = math.fsum(numbers) / len(numbers)
    assert abs(aggregate(chdb_store_of_module, AVG, numbers) - mean) <= bound


@settings(max_examples=examples(30))
@given(numbers=st.lists(st.integers(-(2**46), 2**46), min_size=1, max_size=100))
def test_sum_of_whole_numbers_is_exact(
    chdb_store_of_module: FreshStore, numbers: list[int]
) -> None:
    assert aggregate(chdb_store_of_module, SUM, numbers) == sum(numbers)


def test_sum_whose_partial_sum_overflows_is_null(chdb_store: FreshStore) -> None:
    rows = "(SELECT arrayJoin([1e308, 1e308, -1e308]) AS number)"
    assert chdb_store.rows(f"SELECT {SUM} FROM {rows}") == [[None]]
