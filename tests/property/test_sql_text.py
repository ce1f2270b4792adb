"""What holds for the statement of every query, whatever its values are."""

import re
from copy import deepcopy
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headrace.base.errors import InvalidQuery
from headrace.model.catalog import EVENTS
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import CHDB_DIALECT
from headrace.query.result_values import format_rows
from headrace.query.sql.compile import compile_query
from headrace.query.sql.time_buckets import inlined_offset_changes
from headrace.query.validate.check import check_query
from headrace.query.validate.day_range import is_contiguous, rollup_days_suffice
from headrace.query.validate.decode import decode_query
from headrace.query.validate.timezones import zone_names
from testing.chdb import FreshStore
from testing.queries import WEBSITE, as_bytes, plan_of, statement_of
from tests.oracle.columns import ALIASES
from tests.property.query_cases import bodies, column

Body = dict[str, Any]

# NUL is refused in events, but a caller may look for it; lone surrogates are no JSON.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# Keys that begin like what stands between two texts are looked for in another way.
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=".:,]"), max_size=8)
numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.just(-0.0)
)
timestamps = st.one_of(
    st.datetimes().map(lambda timestamp: timestamp.isoformat(timespec="milliseconds")),
    st.dates().map(str),
    st.integers(-(10**13), 10**13),
)


@st.composite
def twins(draw: st.DrawFn) -> tuple[Body, Body]:
    """Draw two bodies that ask the same of other values: texts, numbers, dates, keys, pages."""
    body = draw(bodies)
    _change_keys(draw, body)
    twin = deepcopy(body)
    table: str = body["query"]["table"]
    table = ALIASES.get(table, table)
    _change_keys(draw, twin)
    for sent in twin["query"].get("filters", []):
        sent["value"] = _another(draw, column(table, sent["field"]).kind, sent["value"])
    for number, select in enumerate(twin["query"]["selects"]):
        _rename(draw, twin, select, number)
    start = draw(st.dates(max_value=date(9990, 1, 1)))
    days = draw(st.one_of(st.integers(0, 30), st.integers(0, 3_000)))
    twin |= {"startDate": str(start), "endDate": str(start + timedelta(days=days))}
    twin["timezone"] = draw(st.sampled_from(sorted(zone_names())))
    twin |= {"limit": draw(st.integers(1, 20_000)), "offset": draw(st.integers(0, 1_000_000))}
    return body, twin


def _another(draw: st.DrawFn, kind: str, value: Any) -> Any:
    """Draw another value of the same type, or another array with none but texts, or with others."""
    if isinstance(value, list):
        values: list[Any] = value  # pyright: ignore[reportUnknownVariableType] - JSON
        example = next((item for item in values if not isinstance(item, str)), values[0])
        return draw(st.lists(_alike(kind, example), min_size=1, max_size=5))
    return draw(_alike(kind, value))


def _alike(kind: str, value: Any) -> st.SearchStrategy[Any]:
    if kind == "datetime":
        return timestamps
    if isinstance(value, bool):
        return st.booleans()
    return texts if isinstance(value, str) and kind != "number" else numbers


def _change_keys(draw: st.DrawFn, body: Body) -> None:
    """Give every property another key with as many dots, the same one wherever it is named."""
    query = body["query"]
    keys: dict[str, str] = {}

    def change(field: str) -> str:
        if not field.startswith("properties."):
            return field
        parts = field.removeprefix("properties.").split(".")
        if field not in keys:
            keys[field] = "properties." + ".".join(draw(names) or "_" for _ in parts)
        return keys[field]

    for item in [*query["selects"], *query.get("filters", [])]:
        item["field"] = change(item["field"])
    groups = query.get("groupBy", [])
    query["groupBy"] = [change(field) for field in groups]
    for key in body.get("orderBy", []):
        key["field"] = change(key["field"]) if key["field"] in groups else key["field"]
    assume(len(set(keys.values())) == len(keys))


def _rename(draw: st.DrawFn, body: Body, select: Body, number: int) -> None:
    if "alias" not in select:
        return
    old, select["alias"] = select["alias"], f"{number} {draw(texts)}"
    for key in body.get("orderBy", []):
        key["field"] = select["alias"] if key["field"] == old else key["field"]


def accepted(body: Body) -> bool:
    try:
        plan_of(body)
    except InvalidQuery:
        return False
    return True


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)
@given(pair=twins())
def test_statement_is_the_same_for_any_values(pair: tuple[Body, Body]) -> None:
    body, twin = pair
    assume(accepted(body) and accepted(twin))
    ranges = plan_of(body).range, plan_of(twin).range
    for tells in (is_contiguous, rollup_days_suffice):
        assume(tells(ranges[0]) == tells(ranges[1]))
    if "wall_ms" in statement_of(body).sql:
        assume(inlined_offset_changes(ranges[0]) == inlined_offset_changes(ranges[1]))
    assert statement_of(twin).sql == statement_of(body).sql


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(body=bodies, website=texts.map(WebsiteId))
def test_statement_names_its_website_wherever_it_reads(body: Body, website: WebsiteId) -> None:
    assume(accepted(body))
    compiled = compile_query(check_query(decode_query(as_bytes(body)), website), CHDB_DIALECT)
    reads = len(
        re.findall(r"FROM (?:events|visits|mergeTreeProjection|errors|performance)\b", compiled.sql)
    )
    assert reads >= 1
    assert compiled.sql.count("website_id = {p0:String}") == reads
    sent_query = [(select["field"], select["aggregate"]) for select in body["query"]["selects"]]
    distinct = sent_query.count(("website_id", "uniq"))
    assert compiled.sql.count("website_id") == reads + 2 * distinct
    assert len(re.findall(r"\{p0:", compiled.sql)) == reads
    assert compiled.parameters["p0"] == website


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(body=bodies)
def test_every_parameter_has_a_placeholder_and_vice_versa(body: Body) -> None:
    assume(accepted(body))
    compiled = statement_of(body)
    assert set(re.findall(r"\{(\w+):", compiled.sql)) == set(compiled.parameters)


@pytest.fixture(scope="module")
def changeable(chdb_store_of_module: FreshStore) -> frozenset[str]:
    """The engine's functions that may answer differently over the same rows, such as now."""
    names = chdb_store_of_module.rows("SELECT name FROM system.functions WHERE NOT deterministic")
    return frozenset(name.lower() for (name,) in names)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(body=bodies)
def test_result_depends_only_on_rows_and_values(changeable: frozenset[str], body: Body) -> None:
    """Answers are kept for as long as no row changes."""
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


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(pair=twins())
def test_every_accepted_plan_compiles_and_runs(tables: FreshStore, pair: tuple[Body, Body]) -> None:
    for body in pair:
        if not accepted(body):
            continue
        plan, compiled = plan_of(body), statement_of(body)
        kinds = [output.kind for output in compiled.outputs]
        rows = format_rows(tables.select(compiled), kinds)
        assert all(len(row) == len(kinds) for row in rows)
        if plan.granularity is None and not plan.group_by:
            assert len(rows) == (1 if plan.offset == 0 else 0)
