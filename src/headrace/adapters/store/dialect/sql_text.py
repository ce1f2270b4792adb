"""Writes a compiled query as SQL that clients of ClickHouse run as it is.

The service never runs this text: there, values are bound parameters.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from headrace.adapters.store.dialect.parameters import FIELD_ESCAPES, write_number
from headrace.adapters.store.dialect.results import READER_SETTINGS
from headrace.model.plan import CompiledQuery, Output, OutputKind

_PLACEHOLDER: Final = re.compile(r"\{(p\d+):([\w()]+)\}")
_ESCAPES: Final = FIELD_ESCAPES | str.maketrans({"'": "\\'"})
_TYPES_OF_LITERALS: Final = ("String", "Float64", "UInt64", "Bool")
"""A literal has such a type, or a narrower one that gives the same results."""

_RESULT_SETTINGS: Final = ("session_timezone", "totals_mode")
"""The settings of a select that change its result, and not only its format, limits or speed."""

_UNITS: Final = {
    OutputKind.DATETIME: "milliseconds since 1970 in UTC",
    OutputKind.HOUR: "hours since 1970 in the timezone of the query",
    OutputKind.DAY: "days since 1970 in the timezone of the query",
    OutputKind.WEEK: "weeks from Monday, 29 December 1969",
    OutputKind.MONTH: "12 * year + month",
}


def write_sql(query: CompiledQuery) -> str:
    """Return the statement with its values as literals, below comments that name its columns.

    It returns the rows that the store returns for the query: up to one more than the limit, with
    days and times as numbers, and without the empty buckets that `fill` adds later.
    """
    statement = _PLACEHOLDER.sub(
        lambda found: _literal(query.parameters[found[1]], found[2]), query.sql
    )
    settings = ", ".join(f"{name} = '{READER_SETTINGS[name]}'" for name in _RESULT_SETTINGS)
    return "\n".join([*_comments(query), statement, f"SETTINGS {settings}", ""])


def _comments(query: CompiledQuery) -> Iterator[str]:
    for index, output in enumerate(query.outputs):
        alias = f"c{index}"
        if re.search(rf"\b{alias}\b", query.sql) is not None:  # else it has its own name
            yield f"-- {alias}: {_column(output)}"


def _column(output: Output) -> str:
    """Return the name of a column and its unit on one line. JSON has no line break in a text."""
    name = output.name if output.name.isidentifier() else json.dumps(output.name)
    unit = _UNITS.get(output.kind)
    return name if unit is None else f"{name} ({unit})"


def _literal(value: object, type_name: str) -> str:
    text = _value(value)
    if text.startswith("-"):  # `::` would bind more tightly than the sign
        return f"CAST({text}, '{type_name}')"
    return text if type_name in _TYPES_OF_LITERALS else f"{text}::{type_name}"


def _value(value: object) -> str:
    match value:
        case str():
            return f"'{value.translate(_ESCAPES)}'"
        case bool() | int() | float():
            return write_number(value)
        case _:
            elements = cast("Sequence[Any]", value)
            return f"[{', '.join(map(_value, elements))}]"
