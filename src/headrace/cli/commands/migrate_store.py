"""`headrace migrate-store`: moves rows from a data directory to ClickHouse, or back."""

import sys
from collections.abc import Sequence

import click

from headrace.base.clock import date_from_days
from headrace.base.logs import configure_logging
from headrace.base.settings import load_settings
from headrace.cli.options import WholeNumber, data_options
from headrace.cli.output import pluralize, print_json, print_table
from headrace.cli.progress import ProgressLine
from headrace.model.migration import DayMismatch, MigrationResult, MigrationTarget
from headrace.wiring.commands.migration import migrate_store, migration_target

_MAX_SHOWN = 50
_HEADERS = ("table", "website", "day", "target rows", "source rows", "checksums")


@click.command("migrate-store")
@click.option(
    "--to",
    required=True,
    metavar="URL|clickhouse|embedded",
    help="URL of a ClickHouse store, `clickhouse` for the URL in HEADRACE_CLICKHOUSE_URL or "
    "HEADRACE_CLICKHOUSE_URL_FILE, or `embedded` to move the rows from there back to this machine.",
)
@click.option(
    "--rows-at-once",
    type=WholeNumber(1, 1_000_000),
    default=100_000,
    show_default=True,
    help="Maximum rows of one insert, 1 to 1000000. An insert also has at most 32 MiB.",
)
@data_options
def migrate_store_command(to: str, rows_at_once: int, data: str | None, as_json: bool) -> None:
    """Move all rows to ClickHouse, or back to the data directory.

    The service may run and accept events meanwhile. The command can be stopped at any time; when it
    is run again, it continues. At the end it compares row counts and checksums for each website and
    day, and exits with code 1 if they differ.
    """
    configure_logging("error", process="migrate-store")
    settings = load_settings({"data_dir": data})
    with ProgressLine("Copying rows", is_printed_to_files=True) as line:
        result = migrate_store(settings, to=to, progress=_Progress(line), rows_at_once=rows_at_once)
    if as_json:
        _print_json(result)
    else:
        _print(result, migration_target(to))
    if result.mismatches:
        sys.exit(1)


class _Progress:
    """Prints a `CopyProgress`."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line

    def comparing(self) -> None:
        """Print that both stores are compared."""
        self._line.clear()
        click.echo("Comparing the two stores.", err=True)

    def copying(self, done: int, total: int) -> None:
        """Show the number of copied rows."""
        self._line.show(done, total)


def _print(result: MigrationResult, target: MigrationTarget) -> None:
    if result.mismatches:
        _print_mismatches(result.mismatches)
        return
    rows = pluralize(result.copied, "row")
    click.echo(f"Copied {rows}. Row counts and checksums of both stores are equal.")
    click.echo(_NEXT_STEP[target, result.is_done])


_NEXT_STEP = {
    (
        MigrationTarget.CLICKHOUSE,
        True,
    ): "The migration is complete. From now on, start the service with HEADRACE_CLICKHOUSE_URL. "
    "The directory `store` in the data directory is not used any more.",
    (
        MigrationTarget.CLICKHOUSE,
        False,
    ): "Next, restart the service with HEADRACE_CLICKHOUSE_URL. It accepts events and keeps them "
    "in its log until you run this command again, which copies the rows added since.",
    (
        MigrationTarget.EMBEDDED,
        True,
    ): "The migration is complete. Start the service without HEADRACE_CLICKHOUSE_URL.",
    (
        MigrationTarget.EMBEDDED,
        False,
    ): "Next, stop the service, run this command again, which copies the rows added since, and "
    "start the service without HEADRACE_CLICKHOUSE_URL.",
}


def _print_mismatches(mismatches: Sequence[DayMismatch]) -> None:
    click.echo("The stores differ; the migration is not complete:")
    print_table(_HEADERS, [_row(each) for each in mismatches[:_MAX_SHOWN]])
    if len(mismatches) > _MAX_SHOWN:
        click.echo(f"… and {len(mismatches) - _MAX_SHOWN} more days")


def _row(mismatch: DayMismatch) -> Sequence[str]:
    return (
        mismatch.day.table,
        mismatch.day.website_id,
        _day(mismatch),
        str(mismatch.target.rows),
        str(mismatch.source.rows),
        f"{mismatch.target.checksum:016x} / {mismatch.source.checksum:016x}",
    )


def _day(mismatch: DayMismatch) -> str:
    try:
        return date_from_days(mismatch.day.day).isoformat()
    except OverflowError:
        return str(mismatch.day.day)


def _print_json(result: MigrationResult) -> None:
    print_json(
        {
            "copied": result.copied,
            "done": result.is_done,
            "differences": [
                {
                    "table": mismatch.day.table,
                    "website_id": mismatch.day.website_id,
                    "day": _day(mismatch),
                    "rows_in_source": mismatch.source.rows,
                    "rows_in_target": mismatch.target.rows,
                }
                for mismatch in result.mismatches
            ],
        }
    )
