"""`headrace quarantine`: what could not be stored, why, and another try."""

from collections.abc import Sequence

import click
import msgspec

from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError
from headrace.base.settings import Settings, load_settings
from headrace.cli.options import data_options
from headrace.cli.output import (
    JsonObject,
    format_iso_timestamp,
    format_short_timestamp,
    print_json,
    print_table,
)
from headrace.ports.quarantine import StoredEntry
from headrace.wiring.quarantine import locked_requeuer, open_requeuer

_MAX_REASON_LENGTH = 80


def _settings_of(data: str | None) -> Settings:
    return load_settings({"data_dir": data})


@click.group("quarantine")
def quarantine() -> None:
    """Read what was set aside because the store refused it, and try it again."""


@quarantine.command("list")
@data_options
def list_quarantine(data: str | None, as_json: bool) -> None:
    """List what was set aside, why and when."""
    found = open_requeuer(_settings_of(data), SystemClock()).entries()
    if as_json:
        print_json([_as_object(stored) for stored in found])
    elif found:
        print_table(("id", "set aside", "what", "reason"), [_row(stored) for stored in found])
    else:
        click.echo("Nothing was set aside: everything that was accepted could be stored.")


@quarantine.command("show", short_help="Show one entry whole.")
@click.argument("entry_id", metavar="ID")
@data_options
def show_quarantine(entry_id: str, data: str | None, as_json: bool) -> None:
    """Show one entry whole: where it came from, why it was set aside, and the item itself."""
    stored = open_requeuer(_settings_of(data), SystemClock()).entry(entry_id)
    if as_json:
        print_json({**_as_object(stored), "content": msgspec.Raw(stored.text)})
        return
    click.echo(
        f"Set aside {format_short_timestamp(stored.quarantined_ms)}: {stored.entry.reason}\n"
    )
    click.echo(stored.text)


@quarantine.command("retry", short_help="Put entries back in the way to the store.")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Retry all that was set aside.")
@data_options
def retry_quarantine(ids: Sequence[str], everything: bool, data: str | None, as_json: bool) -> None:
    """Put entries back in the way to the store, as their files are now, and remove the files.

    A file may be mended before. What the store refuses again is set aside again, under a new id.
    """
    if bool(ids) == everything:
        raise OperatorError("name the ids to retry, or say --all; not both")
    with locked_requeuer(_settings_of(data), SystemClock()) as requeuer:
        retried = requeuer.requeue(None if everything else ids)
    if as_json:
        print_json({"retried": retried})
    elif retried:
        click.echo(f"Put back {len(retried)}. The running service stores them within seconds.")
    else:
        click.echo("Nothing was set aside; there is nothing to retry.")


def _as_object(stored: StoredEntry) -> JsonObject:
    item = stored.entry.item or {}
    return {
        "id": stored.id,
        "set_aside": format_iso_timestamp(stored.quarantined_ms),
        "stream": stored.entry.stream,
        "website": item.get("website_id"),
        "reason": stored.entry.reason,
    }


def _row(stored: StoredEntry) -> tuple[str, ...]:
    reason = " ".join(stored.entry.reason.split())
    short = reason if len(reason) <= _MAX_REASON_LENGTH else f"{reason[: _MAX_REASON_LENGTH - 1]}…"
    return (
        stored.id,
        format_short_timestamp(stored.quarantined_ms),
        stored.entry.stream or "record",
        short,
    )
