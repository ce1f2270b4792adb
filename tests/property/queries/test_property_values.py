"""SQL gives the same property value as Python, for a scanned and for a parsed document."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from headrace.formats.simple_properties import IS_SIMPLE, IS_SIMPLE_COLUMN
from headrace.model.catalog import EVENTS, Column
from headrace.model.plan import OutputKind
from headrace.ports.store import CHDB_DIALECT, Dialect
from headrace.query.result_values import FORMATTERS
from headrace.query.sql.builder import Parameters
from headrace.query.sql.json_properties import PropertyColumns
from testing.chdb import FreshStore
from testing.examples import examples

KEYS = (
    *("k", "a.b", "a", 'x"k', 'k"', "\\k", '"', "{", 'k":1,"k', "ü", "\n", "\u2028"),
    *(",", ":", "],", ":5,", ",k"),
)
TEXTS = (
    *("", "pro", "5", "true", "null", '"', "\\", '"k":1', '{"k":1}', ',"k":5', ':{"k', "[", "a,b"),
    *("}", "]", "\n", "\u2028", "ü", 'x":{"y', "-1", "1e5", " pro", " ", ":", ":5,", ":5}", "],"),
)
NUMBERS = (
    *(0, 1, -1, 5.0, 0.1, -0.0, -0.5, 1e21, 1e-7, 123_456_789_012, 2**32, 2**32 + 5, 2**53 + 1),
    *(2**63, 2**64 - 1, 1.5e300, 5e-324, 10**16, 12345.678),
)
simple = st.sampled_from((*TEXTS, *NUMBERS, True, False, None))
values = st.recursive(
    simple,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)
documents = st.dictionaries(
    st.sampled_from((*KEYS[:3], ":", ":k", ",")), simple | st.lists(simple, max_size=2)
) | st.dictionaries(st.sampled_from(KEYS), values)
DIALECTS = (
    pytest.param(CHDB_DIALECT, id="embedded"),
    pytest.param(Dialect(needs_big_int_workaround=True), id="cluster"),
)


def found(document: dict[str, Any], key: str) -> Any:
    """Look up the exact key first, then the nested one."""
    if key in document or "." not in key:
        return document.get(key)
    outer, inner = key.split(".")
    nested = document.get(outer)
    return nested.get(inner) if isinstance(nested, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON


def shown(value: Any) -> Any:
    """Return a value as results show it, with its type."""
    if isinstance(value, list | dict):
        return "json", value
    return ("number", value) if is_number(value) else (type(value).__name__, value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read(value: str | None) -> Any:
    if value is None:
        return shown(None)
    if value[0] in "[{":
        return shown(msgspec.json.decode(value))
    return shown(FORMATTERS[OutputKind.JSON](value))


def column(key: str) -> Column:
    named = EVENTS.column(f"properties.{key}")
    assert named is not None
    return named


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(random_strategy=st.lists(documents, min_size=1, max_size=40), key=st.sampled_from(KEYS))
@example(random_strategy=[{"a": {"k": 1}}, {"a": [{"k": 1}]}, {"a": [1, {"k": 1}]}], key="k")
@example(random_strategy=[{"a": ":5, "}], key=":")
@example(random_strategy=[{"a": "x", ":5,": 1}], key=",")
@example(random_strategy=[{"a": ["x"], ":5,": 1}], key="],")
@example(random_strategy=[{"a": "x", "b": 5, "c": ":6}"}], key=":")
def test_value_is_the_one_that_was_sent(
    chdb_store_of_module: FreshStore,
    dialect: Dialect,
    random_strategy: list[dict[str, Any]],
    key: str,
) -> None:
    parameters = Parameters()
    properties = PropertyColumns(parameters, dialect)
    sent_query = column(key)
    names = [
        properties.value(sent_query),
        properties.number(sent_query),
        properties.sum_operand(sent_query),
    ]
    stored = [
        msgspec.json.encode(document).decode() if document else "" for document in random_strategy
    ]
    source = f"arrayJoin({parameters.bind(stored, 'Array(String)')}) AS properties"
    sql = (
        f"WITH {', '.join(properties.definitions)} SELECT {', '.join(names)}"
        f" FROM (SELECT properties, {IS_SIMPLE} AS {IS_SIMPLE_COLUMN} FROM (SELECT {source}))"
    )
    rows = chdb_store_of_module.rows(sql, parameters.values)
    wanted = [found(document, key) for document in random_strategy]
    assert [read(row[0]) for row in rows] == [shown(value) for value in wanted]
    numbers = [float(value) if is_number(value) else None for value in wanted]
    assert [None if row[1] is None else float(row[1]) for row in rows] == numbers
    assert [float(row[2]) for row in rows] == [number or 0.0 for number in numbers]
