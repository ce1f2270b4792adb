"""Invariants of the SQL of every query, for any values."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.base.errors import InvalidQuery
from headrace.model.catalog import EVENTS
from headrace.model.data_retention import Cutoffs
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import CHDB_DIALECT, SERVER_DIALECT, Dialect
from headrace.query.result_values import format_rows
from headrace.query.sql.compile import compile_query
from headrace.query.sql.sources.daily_rows import divided_days, reads_daily_rows
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query
from testing.chdb import FreshStore
from testing.queries import WEBSITE, as_bytes, plan_of, statement_of
from tests.property.generators.query_cases import bodies
from tests.property.generators.query_pairs import query_pairs, texts

Body = dict[str, Any]

CUTOFFS_MS = st.integers(0, 40_000).map(lambda day: day * MILLISECONDS_PER_DAY)


def accepted(body: Body) -> bool:
    try:
        plan_of(body)
    except InvalidQuery:
        return False
    return True


def days_read_from_rollup(body: Body) -> tuple[bool, int]:
    """Return whether the embedded store reads the rollup, and the number of divided days."""
    plan = plan_of(body)
    is_read = reads_daily_rows(plan, is_distributed=False)
    ranges = [days for days in (plan.range, plan.compare) if days is not None]
    return is_read, len(divided_days(ranges)) if is_read else 0


def sql_of(body: Body, website: WebsiteId, dialect: Dialect, cutoff_ms: int | None) -> str:
    cutoffs = Cutoffs(cutoff_ms, cutoff_ms, cutoff_ms)
    return compile_query(
        check_query(decode_query(as_bytes(body)), website, cutoffs, now_ms=0), dialect
    ).sql


@pytest.mark.parametrize(
    "dialect",
    [pytest.param(CHDB_DIALECT, id="chDB"), pytest.param(SERVER_DIALECT, id="ClickHouse")],
)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    pair=query_pairs(),
    websites=st.tuples(texts, texts),
    cutoffs=st.just((None, None)) | st.tuples(CUTOFFS_MS, CUTOFFS_MS),
)
def test_statement_is_the_same_for_any_values(
    dialect: Dialect,
    pair: tuple[Body, Body],
    websites: tuple[str, str],
    cutoffs: tuple[int | None, int | None],
) -> None:
    """The pairs have one shape by construction; the text may depend on nothing else.

    A drawn query may be invalid by accident; its validity also depends on its shape only. Whether
    days are whole, and so read from the daily rollup, is not part of the construction.
    """
    body, twin = pair
    assume(accepted(body))
    assume(days_read_from_rollup(body) == days_read_from_rollup(twin))
    first, second = (WebsiteId(website) for website in websites)
    assert sql_of(twin, second, dialect, cutoffs[1]) == sql_of(body, first, dialect, cutoffs[0])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies, cutoff_ms=CUTOFFS_MS)
def test_statement_hides_expired_rows_wherever_it_reads(body: Body, cutoff_ms: int) -> None:
    assume(accepted(body))
    cutoffs = Cutoffs(cutoff_ms, cutoff_ms, cutoff_ms)
    compiled = compile_query(plan_of(body, cutoffs), CHDB_DIALECT)
    reads = len(
        re.findall(r"FROM (?:events|visits|mergeTreeProjection|errors|performance)\b", compiled.sql)
    )
    assert len(re.findall(r"\{p1:Int64\}", compiled.sql)) == reads
    assert compiled.parameters["p1"] == cutoff_ms


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies, website=texts.map(WebsiteId))
def test_statement_names_its_website_wherever_it_reads(body: Body, website: WebsiteId) -> None:
    assume(accepted(body))
    compiled = compile_query(
        check_query(decode_query(as_bytes(body)), website, now_ms=0), CHDB_DIALECT
    )
    reads = len(
        re.findall(r"FROM (?:events|visits|mergeTreeProjection|errors|performance)\b", compiled.sql)
    )
    assert reads >= 1
    assert compiled.sql.count("website_id = {p0:String}") == reads
    sent_query = [(select["field"], select["aggregate"]) for select in body["query"]["selects"]]
    ranges = 1 if body.get("compare") is None else 2
    distinct = compiled.sql.count("uniqExactIf(website_id, website_id != ''")
    least = sent_query.count(("website_id", "uniq")) * ranges
    assert least <= distinct <= 2 * least  # once more where the top groups are ranked
    assert compiled.sql.count("website_id") == reads + 2 * distinct
    assert len(re.findall(r"\{p0:", compiled.sql)) == reads
    assert compiled.parameters["p0"] == website


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies)
def test_every_parameter_has_a_placeholder_and_vice_versa(body: Body) -> None:
    assume(accepted(body))
    compiled = statement_of(body)
    assert set(re.findall(r"\{(\w+):", compiled.sql)) == set(compiled.parameters)


@pytest.fixture(scope="module")
def changeable(chdb_store_of_module: FreshStore) -> frozenset[str]:
    """The non-deterministic functions of chDB, such as `now`."""
    names = chdb_store_of_module.rows("SELECT name FROM system.functions WHERE NOT deterministic")
    return frozenset(name.lower() for (name,) in names)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies)
def test_result_depends_only_on_rows_and_values(changeable: frozenset[str], body: Body) -> None:
    """The cache keeps results for as long as no row changes."""
    assume(accepted(body))
    called = {name.lower() for name in re.findall(r"(\w+)\(", statement_of(body).sql)}
    assert {"now", "rand", "today"} <= changeable
    assert called & changeable == set()


@pytest.fixture(scope="module")
def tables(chdb_store_of_module: FreshStore) -> FreshStore:
    chdb_store_of_module.insert(
        EVENTS,
        [
            {
                "website_id": WEBSITE,
                "time": 1_761_440_400_000 + number * 3_600_000,
                "session_id": f"s{number % 2}",
                "anonymous_id": "u",
                "path": "/",
                "value": float(number),
                "properties": b'{"k":[1,{"a":2}],"n":5,"a":{"b":"x"},"a.b":true}',
            }
            for number in range(5)
        ],
    )
    return chdb_store_of_module


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(pair=query_pairs())
def test_every_accepted_plan_compiles_and_runs(tables: FreshStore, pair: tuple[Body, Body]) -> None:
    for body in pair:
        if not accepted(body):
            continue
        plan, compiled = plan_of(body), statement_of(body)
        kinds = [output.kind for output in compiled.outputs]
        rows = format_rows(tables.select(compiled), kinds)
        assert all(len(row) == len(kinds) for row in rows)
        if not plan.has_groups and (plan.totals or not plan.having):
            assert len(rows) == (1 if plan.offset == 0 or plan.totals else 0)
