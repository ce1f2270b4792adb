"""`headrace migrate-store`: from one machine's data directory to ClickHouse, and back."""

import sys
from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Self

import click

from headrace.base.settings import data_path, load_settings
from headrace.base.telemetry import configure_logging
from headrace.cli.options import data_options, make_private_directory
from headrace.cli.output import print_json, print_table
from headrace.model.migration import DayMismatch, MigrationResult, MigrationTarget
from headrace.wiring.migration import migrate_store, migration_target

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

_EPOCH = date(1970, 1, 1)
_MAX_SHOWN = 50
_HEADERS = ("table", "website", "day", "rows there", "rows here", "checksums")
_TENTH = 10


@click.command("migrate-store")
@click.option(
    "--to",
    required=True,
    metavar="URL|clickhouse|embedded",
    help="the URL of a ClickHouse store; `clickhouse` for the one that HEADRACE_CLICKHOUSE_URL or "
    "HEADRACE_CLICKHOUSE_URL_FILE names; `embedded` to bring the rows back from there",
)
@click.option(
    "--rows-at-once",
    type=click.IntRange(1, 1_000_000),
    default=100_000,
    show_default=True,
    help="rows of one insert at most; also no more than 32 MiB",
)
@data_options
def migrate_store_command(to: str, rows_at_once: int, data: str | None, as_json: bool) -> None:
    """Move all rows to ClickHouse, or back into the data directory.

    The service may run and go on taking in events. It can be ended at any time and run again: it
    goes on where it was. Counts and checksums of every website and day are compared at the end.
    """
    configure_logging("error", process="migrate-store")
    settings = load_settings({"data_dir": data})
    if migration_target(to) is MigrationTarget.EMBEDDED:
        make_private_directory(data_path(settings))
    with _Progress() as progress:
        result = migrate_store(settings, to=to, progress=progress, rows_at_once=rows_at_once)
    if as_json:
        _print_json(result)
    else:
        _print(result, migration_target(to))
    if result.mismatches:
        sys.exit(1)


class _Progress:
    """A bar on a terminal, elsewhere a line for each tenth; on standard error."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._bar: ProgressBar[int] | None = None
        self._done = 0
        self._tenth = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_bar()

    def comparing(self) -> None:
        """Say that both stores are read."""
        self._end_bar()
        click.echo("Comparing both stores.", err=True)

    def copying(self, done: int, total: int) -> None:
        """Show how many rows of all have been copied."""
        if self._is_shown:
            self._show_bar(done, total)
        elif total and done * _TENTH // total != self._tenth:
            self._tenth = done * _TENTH // total
            click.echo(f"Copied {done} of {total} rows.", err=True)

    def _show_bar(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = click.progressbar(
                length=total, label="Copying rows", show_pos=True, file=sys.stderr
            )
            self._bar.render_progress()
        self._bar.update(done - self._done)
        self._done = done

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None


def _print(result: MigrationResult, target: MigrationTarget) -> None:
    if result.mismatches:
        _print_mismatches(result.mismatches)
        return
    click.echo(f"Copied {result.copied} rows. Both stores have the same, by count and checksum.")
    click.echo(_NEXT_STEP[target, result.is_done])


_NEXT_STEP = {
    (
        MigrationTarget.CLICKHOUSE,
        True,
    ): "The move is done: the service belongs to ClickHouse from now on "
    "(HEADRACE_CLICKHOUSE_URL). The directory `store` in the data directory is not needed "
    "any more.",
    (
        MigrationTarget.CLICKHOUSE,
        False,
    ): "Now start the service again with HEADRACE_CLICKHOUSE_URL. It takes in "
    "events and holds them until this command has been run once more, which copies what came "
    "meanwhile.",
    (
        MigrationTarget.EMBEDDED,
        True,
    ): "The move is done: start the service without HEADRACE_CLICKHOUSE_URL.",
    (
        MigrationTarget.EMBEDDED,
        False,
    ): "Now stop the service, run this command once more, which copies what "
    "came meanwhile, and start the service without HEADRACE_CLICKHOUSE_URL.",
}


def _print_mismatches(mismatches: Sequence[DayMismatch]) -> None:
    click.echo("The stores are not the same; the move is not done:")
    print_table(_HEADERS, [_row(one) for one in mismatches[:_MAX_SHOWN]])
    if len(mismatches) > _MAX_SHOWN:
        click.echo(f"… and {len(mismatches) - _MAX_SHOWN} more days")


def _row(one: DayMismatch) -> Sequence[str]:
    return (
        one.day.table,
        one.day.website_id,
        _day(one),
        str(one.target.rows),
        str(one.source.rows),
        f"{one.target.checksum:016x} / {one.source.checksum:016x}",
    )


def _day(one: DayMismatch) -> str:
    try:
        return (_EPOCH + timedelta(days=one.day.day)).isoformat()
    except OverflowError:
        return str(one.day.day)


def _print_json(result: MigrationResult) -> None:
    print_json(
        {
            "copied": result.copied,
            "done": result.is_done,
            "differences": [
                {
                    "table": one.day.table,
                    "website_id": one.day.website_id,
                    "day": _day(one),
                    "rows_in_source": one.source.rows,
                    "rows_in_target": one.target.rows,
                }
                for one in result.mismatches
            ],
        }
    )
