"""Prints an answer: a table for people, or what the service sent for programs."""

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec
from msgspec import Struct

from headrace.base.errors import OperatorError
from headrace.cli.output import Cell, JsonObject, counted, print_cells
from headrace.cli.query.client import Reply

_MORE_ROWS = "more rows exist"
_JOINERS = "\u200c\u200d"
"""Part of how some languages and emoji are written, and harmless, unlike the rest of their kind."""


class AnswerFormat(Struct, frozen=True):
    """What the service is asked for, and how that is printed."""

    media_type: str
    show: Callable[[Reply], None]


class _Meta(Struct, frozen=True, rename="camel"):
    row_count: int
    execution_time: float
    truncated: bool


class _Answer(Struct, frozen=True):
    data: list[JsonObject]
    meta: _Meta


def print_answer_table(reply: Reply) -> None:
    """Print rows below their names, and a line with what is told beside them."""
    try:
        answer = msgspec.json.decode(reply.body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise OperatorError("what came back is not the answer of a Headrace service") from None
    if answer.data:
        print_cells(_cells(answer.data))
        click.echo()
    facts = [counted(answer.meta.row_count, "row"), f"{answer.meta.execution_time:.1f} ms"]
    click.echo(", ".join([*facts, _MORE_ROWS] if answer.meta.truncated else facts))


def print_answer_csv(reply: Reply) -> None:
    """Print the service's CSV as it is; that there were more rows goes to standard error."""
    click.echo(reply.body, nl=False)
    if reply.is_cut:
        click.echo(f"headrace: {_MORE_ROWS}", err=True)


def print_answer_json(reply: Reply) -> None:
    """Print the service's JSON as it is, on one line."""
    click.echo(reply.body)


FORMATS: Mapping[str, AnswerFormat] = {
    "table": AnswerFormat("application/json", print_answer_table),
    "csv": AnswerFormat("text/csv", print_answer_csv),
    "json": AnswerFormat("application/json", print_answer_json),
}


def _cells(rows: list[JsonObject]) -> list[list[Cell]]:
    cells = [[_cell(value) for value in row.values()] for row in rows]
    headers = [
        Cell(printable(name), is_number=_are_numbers([row[name] for row in rows]))
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
        return Cell(printable(value))
    return Cell(msgspec.json.encode(value).decode(), is_number=_is_number(value))


def printable(text: str) -> str:
    """Write control characters as escapes: a terminal obeys them, and visitors chose the text."""
    return "".join(map(_printable_character, text))


def _printable_character(character: str) -> str:
    category = unicodedata.category(character)
    is_safe = category[0] != "C" and category not in {"Zl", "Zp"}
    if is_safe or character in _JOINERS:
        return character
    return character.encode("unicode_escape").decode()
