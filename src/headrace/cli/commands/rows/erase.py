"""`headrace erase` and `headrace erasures`."""

from pathlib import Path

import click

from headrace.base.logs import configure_logging
from headrace.base.settings import Settings, load_settings
from headrace.cli.directory import operator_name
from headrace.cli.options import data_options
from headrace.cli.output import format_short_timestamp, pluralize, print_json, print_table
from headrace.cli.selectors import given_selectors, selector_options
from headrace.erasure.receipt import receipt, rows_to_erase
from headrace.model.erasure import WHOLE_WEBSITE, ErasureRequest
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.erasure import Erasure
from headrace.wiring.commands.erasure import (
    erase,
    export_erasures_to,
    forget_machine,
    listed_erasures,
)


@click.command("erase")
@click.option("--website", required=True, metavar="ID", help="Website whose rows are erased.")
@selector_options
@click.option("--all", "everything", is_flag=True, help="Erase all rows of a deleted website.")
@click.option("--dry-run", is_flag=True, help="Only count the rows.")
@click.option(
    "--no-wait", is_flag=True, help="Return when no answer has the rows; files are cleaned later."
)
@data_options
def erase_command(
    *,
    website: str,
    everything: bool,
    with_visitors: bool,
    dry_run: bool,
    no_wait: bool,
    data: str | None,
    as_json: bool,
    **texts: str | None,
) -> None:
    """Erase rows of a website for good, whether the service runs or not.

    The command ends when no file of the data directory has the rows. While the service runs, that
    takes about ten minutes; an interrupted erasure goes on in the service. Events that arrive later
    are stored.
    """
    configure_logging("warning", process="erase")
    selectors = given_selectors(texts, with_visitors=with_visitors, everything=everything)
    request = ErasureRequest(
        website_id=WebsiteId(website),
        selectors=selectors,
        by=operator_name(),
        with_visitors=with_visitors,
        dry_run=dry_run,
    )
    settings = load_settings({"data_dir": data})
    erased = erase(settings, request, waits=not no_wait, show=FailureReport().show)
    print_erasure(erased, dry_run=dry_run, as_json=as_json)


def erase_website(website_id: str, settings: Settings, *, as_json: bool) -> None:
    """Erase all rows of a website that was deleted, and print the receipt."""
    configure_logging("warning", process="erase")
    request = ErasureRequest(
        website_id=WebsiteId(website_id), selectors=(WHOLE_WEBSITE,), by=operator_name()
    )
    erased = erase(settings, request, waits=True, show=FailureReport().show)
    print_erasure(erased, as_json=as_json)


class FailureReport:
    """Prints why an erasure is delayed, each reason once."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, erasure: Erasure) -> None:
        """Print the reason of the last failure, if there is a new one."""
        if erasure.last_error and erasure.last_error != self._last:
            click.echo(f"headrace: {erasure.last_error}; trying again", err=True)
        self._last = erasure.last_error


def print_erasure(erasure: Erasure, *, dry_run: bool = False, as_json: bool) -> None:
    """Print the receipt of an erasure."""
    if as_json:
        print_json(rows_to_erase(erasure) if dry_run else receipt(erasure))
        return
    rows = ", ".join(f"{name}: {count}" for name, count in erasure.rows.items())
    if dry_run:
        click.echo(f"Rows that would be erased: {rows}.")
        return
    state = "done" if erasure.is_done else "pending: files are still being cleaned"
    click.echo(f"Erased rows: {rows}.\nReceipt {erasure.id}: {state}.")
    for sentence in erasure.by_hand:
        click.echo(f"- {sentence}")


@click.group("erasures")
def erasures() -> None:
    """List and export erasures, and forget a machine that is gone."""


@erasures.command("list")
@click.option("--website", metavar="ID", help="Only the erasures of this website.")
@data_options
def list_erasures(website: str | None, data: str | None, as_json: bool) -> None:
    """List the receipts of all erasures, newest first."""
    found = [
        erasure
        for erasure in listed_erasures(load_settings({"data_dir": data}))
        if website in (None, erasure.website_id)
    ]
    if as_json:
        print_json([receipt(erasure) for erasure in found])
    elif found:
        print_table(
            ("id", "requested", "website", "selector", "state"), [_row(one) for one in found]
        )
    else:
        click.echo("Nothing was erased.")


@erasures.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@data_options
def export_erasures(file: Path, data: str | None, as_json: bool) -> None:
    """Write all erasures to a file for `headrace restore --erasures`. FILE must not exist.

    The file has the key of the hashes in the receipts: keep it as secret as the data directory.
    """
    count = export_erasures_to(load_settings({"data_dir": data}), file)
    if as_json:
        print_json({"file": str(file), "erasures": count})
    else:
        click.echo(f"Wrote {pluralize(count, 'erasure')} to {file}.")


@erasures.command("forget-machine", short_help="Wait no longer for a machine that is gone.")
@click.argument("machine", metavar="NAME")
@data_options
def forget_machine_command(machine: str, data: str | None, as_json: bool) -> None:
    """Let the other machines erase without one that is gone for good, whose name they give.

    Neither its clock nor its files are waited for: receipts of erasures that it has not carried out
    name it. If it is started again, it takes part again, and erases what it has.
    """
    forget_machine(load_settings({"data_dir": data}), machine, by=operator_name())
    if as_json:
        print_json({"forgotten": machine})
    else:
        click.echo(f"The machine {machine} is forgotten. Erasures do not wait for it.")


def _row(erasure: Erasure) -> tuple[str, ...]:
    return (
        erasure.id,
        format_short_timestamp(erasure.requested_ms),
        erasure.website_id,
        erasure.kind.value,
        "done" if erasure.is_done else "pending",
    )
