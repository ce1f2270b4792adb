"""Prints a query result: a table for users, or the CSV or JSON of the service for programs."""

from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec
from msgspec import Struct

from headrace.base.printable import escape_unprintable
from headrace.cli.output import Cell, JsonObject, pluralize, print_cells
from headrace.cli.query.client import QueryResponse, decode_response
from headrace.model.catalog import PREVIOUS_OUTPUT_NAME

_MORE_ROWS = "more rows exist"


class OutputFormat(Struct, frozen=True):
    """The media type to request, and how to print it."""

    media_type: str
    show: Callable[[QueryResponse], None]


class _Meta(Struct, frozen=True, rename="camel"):
    row_count: int
    execution_time: float
    truncated: bool


class _StandardBody(Struct, frozen=True):
    data: dict[str, JsonObject | list[JsonObject]]
    meta: _Meta


class _ResultBody(Struct, frozen=True):
    data: list[JsonObject]
    meta: _Meta
    totals: JsonObject | None = None
    others: list[JsonObject] | None = None


def print_result_table(response: QueryResponse) -> None:
    """Print the rows as a table, and a line with the row count and the execution time."""
    result = decode_response(response, _ResultBody)
    if result.data:
        print_cells(_cells(result.data))
        click.echo()
    totals = None if result.totals is None else [result.totals]
    for title, rows in (("Others", result.others), ("Totals", totals)):
        if rows:
            click.echo(title)
            print_cells(_cells(rows))
            click.echo()
    _print_facts(result.meta)


def print_standard_tables(response: QueryResponse) -> None:
    """Print a table for each type of a standard query, and a line for all of them."""
    result = decode_response(response, _StandardBody)
    for name, rows in result.data.items():
        click.echo(escape_unprintable(name))
        if rows:
            print_cells(_cells(rows if isinstance(rows, list) else [rows]))
        else:
            click.echo("no rows")
        click.echo()
    _print_facts(result.meta)


def _print_facts(meta: _Meta) -> None:
    facts = [pluralize(meta.row_count, "row"), f"{meta.execution_time:.1f} ms"]
    click.echo(", ".join([*facts, _MORE_ROWS] if meta.truncated else facts))


def print_result_csv(response: QueryResponse) -> None:
    """Print the CSV unchanged; note on standard error that it is truncated."""
    click.echo(response.body, nl=False)
    if response.is_truncated:
        click.echo(f"headrace: {_MORE_ROWS}", err=True)


def print_result_json(response: QueryResponse) -> None:
    """Print the JSON unchanged, on one line."""
    click.echo(response.body)


FORMATS: Mapping[str, OutputFormat] = {
    "table": OutputFormat("application/json", print_result_table),
    "csv": OutputFormat("text/csv", print_result_csv),
    "json": OutputFormat("application/json", print_result_json),
}
STANDARD_FORMATS: Mapping[str, OutputFormat] = {
    "table": OutputFormat("application/json", print_standard_tables),
    "json": FORMATS["json"],
}


def _flattened(rows: list[JsonObject]) -> list[JsonObject]:
    """Return rows with a column for each value of the compared range, as in CSV."""
    compared = [_compared_values(row) for row in rows]
    names = next((list(values) for values in compared if values), list[str]())
    if not names:
        return rows
    return [
        {
            **{name: value for name, value in row.items() if name != PREVIOUS_OUTPUT_NAME},
            **{f"{PREVIOUS_OUTPUT_NAME}.{name}": values.get(name) for name in names},
        }
        for row, values in zip(rows, compared, strict=True)
    ]


def _compared_values(row: JsonObject) -> JsonObject:
    """Return the values of the compared range, the only object in a row; none where it has none."""
    values: JsonObject | str | None = row.get(PREVIOUS_OUTPUT_NAME)
    return values if isinstance(values, dict) else {}


def _cells(sent: list[JsonObject]) -> list[list[Cell]]:
    rows = _flattened(sent)
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
