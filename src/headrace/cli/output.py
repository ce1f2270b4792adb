"""Formats what commands print: tables and sentences for users, JSON for programs."""

import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import click

from headrace.base.clock import utc_datetime
from headrace.base.json_text import encode_json

JsonObject = dict[str, Any]

_MAX_CELL_WIDTH = 80
"""Columns of the terminal. A longer text would move the next columns of every row away."""

_ELLIPSIS = "…"
_ZERO_WIDTH = frozenset({"Mn", "Me", "Cf"})
"""Categories of characters that combine with others: accents, vowel signs, joiners."""

_BYTE_UNITS = ("KiB", "MiB", "GiB", "TiB")


def print_json(value: object) -> None:
    """Print a value as JSON on one line."""
    click.echo(encode_json(value))


class Cell(NamedTuple):
    """One cell of a table. Numbers are right-aligned."""

    text: str
    is_number: bool = False


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with its headers in upper case."""
    table = [tuple(header.upper() for header in headers), *rows]
    print_cells([[Cell(text) for text in row] for row in table])


def print_cells(rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows with aligned columns. Long texts, except in the last column, are shortened."""
    shown = [(*map(_shortened, row[:-1]), row[-1]) for row in rows]
    widths = [max(_width(cell.text) for cell in column) for column in zip(*shown, strict=True)]
    for row in shown:
        click.echo("  ".join(map(_padded, row, widths)).rstrip())


def _shortened(cell: Cell) -> Cell:
    """Return a cell that is no wider than cells may be: a long text ends in an ellipsis."""
    if _width(cell.text) <= _MAX_CELL_WIDTH:
        return cell
    ends = accumulate(map(_character_width, cell.text))
    length = sum(end <= _MAX_CELL_WIDTH - len(_ELLIPSIS) for end in ends)
    return cell._replace(text=f"{cell.text[:length]}{_ELLIPSIS}")


def _padded(cell: Cell, width: int) -> str:
    padding = " " * (width - _width(cell.text))
    return f"{padding}{cell.text}" if cell.is_number else f"{cell.text}{padding}"


def _width(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2 rows`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_bytes(size: int) -> str:
    """Return a number of bytes in the largest unit that leaves at least 1: `1.5 MiB`."""
    if size < 1024:
        return pluralize(size, "byte")
    scaled, unit = size / 1024, 0
    while scaled >= 1024 and unit < len(_BYTE_UNITS) - 1:
        scaled, unit = scaled / 1024, unit + 1
    return f"{scaled:.1f} {_BYTE_UNITS[unit]}"


def format_short_timestamp(epoch_ms: int) -> str:
    """Return epoch milliseconds in UTC, truncated to the minute: `2026-11-22 16:09Z`."""
    return f"{utc_datetime(epoch_ms):%Y-%m-%d %H:%M}Z"
