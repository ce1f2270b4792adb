"""`headrace storage` and `headrace prune`: what is stored, and deleting what has expired."""

from collections.abc import Iterable, Sequence

import click

from headrace.base.logs import configure_logging
from headrace.base.settings import load_settings
from headrace.cli.directory import operator_name
from headrace.cli.options import data_options
from headrace.cli.output import (
    Cell,
    format_bytes,
    format_short_timestamp,
    pluralize,
    print_cells,
    print_json,
)
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.pruning.objects import pruned_object, storage_object
from headrace.wiring.commands.pruning import describe_storage, prune

_STORAGE_HEADERS = (
    *("website", "table", "rows", "expired", "size", "oldest", "newest"),
    *("retention", "cutoff"),
)
_NUMBERS = frozenset({"rows", "expired", "size"})


@click.command("storage")
@data_options
def storage_command(data: str | None, as_json: bool) -> None:
    """Show what is stored of each website and table, whether the service runs or not.

    Rows are those that answers show, bots included. Expired rows are hidden already, and deleted
    within a day. The size is the share of the table's size on disk that so many rows take.
    """
    configure_logging("warning", process="storage")
    stored = describe_storage(load_settings({"data_dir": data}))
    if as_json:
        print_json([storage_object(one) for one in stored])
        return
    _print_table(_STORAGE_HEADERS, [_storage_row(one) for one in stored])


@click.command("prune")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@data_options
def prune_command(*, dry_run: bool, data: str | None, as_json: bool) -> None:
    """Delete expired rows now, whether the service runs or not.

    A running service does it by itself every day. The command returns when the rows are gone from
    the files that are read; the old files are gone ten minutes later.
    """
    configure_logging("warning", process="prune")
    expired = prune(load_settings({"data_dir": data}), by=operator_name(), dry_run=dry_run)
    if as_json:
        print_json([pruned_object(one) for one in expired])
        return
    if expired:
        _print_table(
            ("website", "table", "rows", "size", "cutoff"), [_pruned_row(one) for one in expired]
        )
    click.echo(_summary(expired, dry_run=dry_run))


def _storage_row(stored: StoredRows) -> tuple[str, ...]:
    return (
        stored.website_id,
        stored.table,
        str(stored.rows),
        str(stored.expired),
        format_bytes(stored.bytes),
        _short_or_dash(stored.oldest_ms),
        _short_or_dash(stored.newest_ms),
        pluralize(stored.retain_days, "day") if stored.retain_days else "for ever",
        _short_or_dash(stored.cutoff_ms),
    )


def _pruned_row(expired: ExpiredRows) -> tuple[str, ...]:
    return (
        expired.website_id,
        expired.table,
        str(expired.rows),
        format_bytes(expired.bytes),
        format_short_timestamp(expired.cutoff_ms),
    )


def _summary(expired: Sequence[ExpiredRows], *, dry_run: bool) -> str:
    if not expired:
        return "No rows have expired."
    rows = pluralize(sum(one.rows for one in expired), "row")
    size = format_bytes(sum(one.bytes for one in expired))
    return f"Would delete {rows}, {size}." if dry_run else f"Deleted {rows}, {size}."


def _print_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose numbers are right-aligned."""
    print_cells(
        [
            [Cell(header.upper(), header in _NUMBERS) for header in headers],
            *(
                [Cell(text, header in _NUMBERS) for header, text in zip(headers, row, strict=True)]
                for row in rows
            ),
        ]
    )


def _short_or_dash(epoch_ms: int | None) -> str:
    return "-" if epoch_ms is None else format_short_timestamp(epoch_ms)
