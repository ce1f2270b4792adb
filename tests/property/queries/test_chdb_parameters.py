"""Every bound value is returned unchanged and never becomes SQL."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.adapters.store.dialect.sql_text import write_sql
from headrace.model.plan import CompiledQuery
from testing.examples import examples
from testing.tables import Tables

AWKWARD = (
    "",
    "\\",
    "\\\\t",
    "\t\n\r\0\b\f\v\x1b\x7f",
    "'",
    "''; DROP TABLE events --",
    '"`',
    "\\N",
    "NULL",
    "[]",
    "{p0:String}",
    " blanks ",
    "\ufeff\u2028",
    "é😀",
    "\ue000\uffff\U0010ffff",
)
TEXTS = st.text(max_size=300) | st.lists(st.sampled_from(AWKWARD)).map("".join)
INTEGERS = st.integers(min_value=-(2**63), max_value=2**63 - 1)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
KINDS: Mapping[str, st.SearchStrategy[Any]] = {
    "String": TEXTS,
    "Array(String)": st.lists(TEXTS, max_size=20),
    "Int64": INTEGERS,
    "Array(Int64)": st.lists(INTEGERS, max_size=20),
    "Float64": NUMBERS,
    "Array(Float64)": st.lists(NUMBERS, max_size=20),
    "Bool": st.booleans(),
    "Array(Bool)": st.lists(st.booleans(), max_size=20),
}


VALUES_A_STATEMENT = 10
"""A statement takes longer than what it does with a value."""


def draw_values(data: st.DataObject, kind: str) -> dict[str, Any]:
    """Draw the values of a statement, by parameter name."""
    values = st.lists(KINDS[kind], min_size=VALUES_A_STATEMENT, max_size=VALUES_A_STATEMENT)
    return {f"p{number}": value for number, value in enumerate(data.draw(values))}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_bound_values_round_trip(kind: str, data: st.DataObject, tables_of_module: Tables) -> None:
    values = draw_values(data, kind)
    selected = ", ".join(f"{{{name}:{kind}}}" for name in values)
    (came_back,) = tables_of_module.rows(f"SELECT {selected}", values)
    assert [as_sent(kind, value) for value in came_back] == list(values.values())


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_literals_have_the_values_and_become_nothing_else(
    kind: str, data: st.DataObject, tables_of_module: Tables
) -> None:
    values = draw_values(data, kind)
    selected = ", ".join(f"{{{name}:{kind}}} AS x_{name}" for name in values)
    sql = write_sql(CompiledQuery(f"SELECT {selected}", values, ()))
    columns = ", ".join(f"x_{name}" for name in values)
    (came_back,) = tables_of_module.rows(f"SELECT {columns} FROM (\n{sql})")
    assert [as_sent(kind, value) for value in came_back] == list(values.values())


def as_sent(kind: str, value: Any) -> Any:
    """Convert a value of a result to the type that was sent."""
    return as_floats(value) if "Float64" in kind else value


def as_floats(value: float | list[float]) -> float | list[float]:
    """Convert numbers to floats: chDB writes whole ones without a decimal point."""
    return [*map(float, value)] if isinstance(value, list) else float(value)


@pytest.mark.parametrize("value", AWKWARD, ids=ascii)
def test_an_awkward_text_keeps_its_length_in_chdb(value: str, tables_of_module: Tables) -> None:
    sql = "SELECT length({text:String}), length({texts:Array(String)}[2])"
    values = {"text": value, "texts": ["x", value]}
    size = len(value.encode())
    assert tables_of_module.rows(sql, values) == [[size, size]]


def test_a_list_of_a_thousand_values_is_bound(tables_of_module: Tables) -> None:
    values = [f"value's {number}\\" for number in range(1000)]
    sql = "SELECT {wanted:String} IN {values:Array(String)}, length({values:Array(String)})"
    rows = tables_of_module.rows(sql, {"wanted": values[-1], "values": values})
    assert rows == [[1, 1000]]


def test_an_integer_beyond_64_bits_is_a_number_not_another_integer(
    tables_of_module: Tables,
) -> None:
    values = {"small": -(10**25), "large": 2**63}
    (row,) = tables_of_module.rows("SELECT {small:Float64}, {large:Float64}", values)
    assert as_floats(row) == [-1e25, 9223372036854775808.0]


@pytest.mark.parametrize("value", [None, b"bytes", {"a": 1}, [None], [["nested"]]], ids=repr)
def test_unsupported_values_are_not_bound(value: object) -> None:
    with pytest.raises(TypeError):
        encode_parameters({"p0": value})
