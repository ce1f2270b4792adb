"""Prints an answer: a table for people, or what the service sent for programs."""

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec
from msgspec import Struct

from headrace.base.errors import OperatorError
from headrace.cli.output import Cell, JsonObject, pluralize, print_cells
from headrace.cli.query.client import QueryResponse

_MORE_ROWS = "more rows exist"
_JOINERS = "\u200c\u200d"
"""Part of how some languages and emoji are written, and harmless, unlike the rest of their kind."""


class OutputFormat(Struct, frozen=True):
    """What the service is asked for, and how that is printed."""

    media_type: str
    show: Callable[[QueryResponse], None]


class _Meta(Struct, frozen=True, rename="camel"):
    row_count: int
    execution_time: float
    truncated: bool


class _ResultBody(Struct, frozen=True):
    data: list[JsonObject]
    meta: _Meta


def print_result_table(response: QueryResponse) -> None:
    """Print rows below their names, and a line with what is told beside them."""
    try:
        result = msgspec.json.decode(response.body, type=_ResultBody)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise OperatorError("what came back is not the answer of a Headrace service") from None
    if result.data:
        print_cells(_cells(result.data))
        click.echo()
    facts = [pluralize(result.meta.row_count, "row"), f"{result.meta.execution_time:.1f} ms"]
    click.echo(", ".join([*facts, _MORE_ROWS] if result.meta.truncated else facts))


def print_result_csv(response: QueryResponse) -> None:
    """Print the service's CSV as it is; that there were more rows goes to standard error."""
    click.echo(response.body, nl=False)
    if response.is_truncated:
        click.echo(f"headrace: {_MORE_ROWS}", err=True)


def print_result_json(response: QueryResponse) -> None:
    """Print the service's JSON as it is, on one line."""
    click.echo(response.body)


FORMATS: Mapping[str, OutputFormat] = {
    "table": OutputFormat("application/json", print_result_table),
    "csv": OutputFormat("text/csv", print_result_csv),
    "json": OutputFormat("application/json", print_result_json),
}


def _cells(rows: list[JsonObject]) -> list[list[Cell]]:
    cells = [[_cell(value) for value in row.values()] for row in rows]
    headers = [
        Cell(escape_unprintable(name), is_number=_are_numbers([row[name] for row in rows]))
        for name in rows[0]
    ]
    return [headers, *cells]


def _are_numbers(values: list[Any]) -> bool:
    return all(value is None or _is_number(value) for value in values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> Cell:
    if value is None:
        return Cell("")
    if isinstance(value, str):
        return Cell(escape_unprintable(value))
    return Cell(msgspec.json.encode(value).decode(), is_number=_is_number(value))


def escape_unprintable(text: str) -> str:
    """Write control characters as escapes: a terminal obeys them, and visitors chose the text."""
    return "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    category = unicodedata.category(character)
    is_safe = category[0] != "C" and category not in {"Zl", "Zp"}
    if is_safe or character in _JOINERS:
        return character
    return character.encode("unicode_escape").decode()
