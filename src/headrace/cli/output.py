"""What the commands print: tables and sentences for people, JSON for programs."""

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import click
import msgspec

from headrace.base.clock import utc_datetime

JsonObject = dict[str, Any]


def print_json(value: JsonObject | list[JsonObject]) -> None:
    """Print one value on one line."""
    click.echo(msgspec.json.encode(value))


class Cell(NamedTuple):
    """One cell of a table; numbers stand at the right of their column."""

    text: str
    is_number: bool = False


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below their headers, the columns aligned."""
    table = [tuple(header.upper() for header in headers), *rows]
    print_cells([[Cell(text) for text in row] for row in table])


def print_cells(rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows of cells, the columns aligned."""
    widths = [max(_width(cell.text) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(map(_padded, row, widths)).rstrip())


def _padded(cell: Cell, width: int) -> str:
    padding = " " * (width - _width(cell.text))
    return f"{padding}{cell.text}" if cell.is_number else f"{cell.text}{padding}"


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    combining = sum(unicodedata.combining(character) > 0 for character in text)
    double_width = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) - combining + double_width


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: `1 row`, `2 rows`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_iso_timestamp(epoch_ms: int) -> str:
    """Return a moment as ISO 8601 in UTC with milliseconds, for programs."""
    return utc_datetime(epoch_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_short_timestamp(epoch_ms: int) -> str:
    """Return a moment in UTC to the minute, for people."""
    return f"{utc_datetime(epoch_ms):%Y-%m-%d %H:%M}Z"
