"""`headrace quarantine`: shows and retries entries that the store rejected."""

from collections.abc import Sequence

import click

from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, load_settings
from headrace.cli.directory import operator_name
from headrace.cli.options import data_options
from headrace.cli.output import (
    format_short_timestamp,
    print_json,
    print_table,
)
from headrace.formats.quarantine_objects import entry_object, entry_with_content_object
from headrace.ports.quarantine import StoredEntry
from headrace.wiring.commands.quarantine import locked_requeuer, open_requeuer

_MAX_REASON_LENGTH = 80


def _settings_of(data: str | None) -> Settings:
    return load_settings({"data_dir": data})


@click.group("quarantine")
def quarantine() -> None:
    """Show entries that the store rejected, and retry them."""


@quarantine.command("list")
@data_options
def list_quarantine(data: str | None, as_json: bool) -> None:
    """List the entries with the time and the reason of their rejection."""
    found = open_requeuer(_settings_of(data), SystemClock()).entries()
    if as_json:
        print_json([entry_object(stored) for stored in found])
    elif found:
        print_table(("id", "quarantined", "kind", "reason"), [_row(stored) for stored in found])
    else:
        click.echo("The quarantine is empty: the store rejected no events.")


@quarantine.command("show", short_help="Show one entry.")
@click.argument("entry_id", metavar="ID")
@data_options
def show_quarantine(entry_id: str, data: str | None, as_json: bool) -> None:
    """Show one entry: its origin, the reason of its rejection, and its content."""
    stored = open_requeuer(_settings_of(data), SystemClock()).entry(entry_id)
    if as_json:
        print_json(entry_with_content_object(stored))
        return
    click.echo(
        f"Quarantined {format_short_timestamp(stored.quarantined_ms)}: {stored.entry.reason}\n"
    )
    click.echo(stored.text)


@quarantine.command("retry", short_help="Requeue entries for the store.")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Retry all entries.")
@data_options
def retry_quarantine(ids: Sequence[str], everything: bool, data: str | None, as_json: bool) -> None:
    """Append entries to the log with the content of their files, and remove the files.

    A file may be corrected before. An entry that the store rejects again is quarantined again with
    a new id.
    """
    if bool(ids) == everything:
        raise OperatorError("give either the ids to retry or --all")
    with locked_requeuer(_settings_of(data), SystemClock()) as requeuer:
        retried = requeuer.requeue(None if everything else ids, by=operator_name())
    if as_json:
        print_json({"retried": retried})
    elif retried:
        entries = f"{len(retried)} {'entry' if len(retried) == 1 else 'entries'}"
        click.echo(f"Requeued {entries}. A running service stores them within seconds.")
    else:
        click.echo("The quarantine is empty; there is nothing to retry.")


def _row(stored: StoredEntry) -> tuple[str, ...]:
    reason = " ".join(stored.entry.reason.split())
    short = reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[: _MAX_REASON_LENGTH - 1]}…"
    return (
        stored.id,
        format_short_timestamp(stored.quarantined_ms),
        stored.entry.stream or "record",
        short,
    )
