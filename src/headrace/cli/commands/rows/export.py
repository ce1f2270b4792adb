"""`headrace export`."""

import sys
from pathlib import Path

import click

from headrace.base.errors import InvalidQuery, OperatorError
from headrace.base.logs import configure_logging
from headrace.base.settings import load_settings
from headrace.cli.directory import operator_name
from headrace.cli.options import ANY_PATH, data_options
from headrace.cli.output import format_bytes, print_json
from headrace.cli.progress import ProgressLine
from headrace.model.export import ExportRequest
from headrace.model.tenancy import WebsiteId
from headrace.query.export.check import FORMAT_NAMES, TABLE_NAMES, check_export
from headrace.wiring.commands.export import Exported, export_to_file, export_to_stream

_STANDARD_OUTPUT = "-"


@click.command("export")
@click.argument("output", metavar="OUTPUT", type=ANY_PATH)
@click.option("--website", required=True, metavar="ID", help="Website whose rows are exported.")
@click.option(
    "--table",
    type=click.Choice(TABLE_NAMES),
    default=TABLE_NAMES[0],
    show_default=True,
    help="Table to export.",
)
@click.option("--from", "first_day", metavar="DATE", help="First day, in UTC: 2026-01-31.")
@click.option("--to", "last_day", metavar="DATE", help="Last day, in UTC. It is included.")
@click.option(
    "--format", "format_name", type=click.Choice(FORMAT_NAMES), required=True, help="Format."
)
@data_options
def export_command(
    *,
    output: str,
    website: str,
    table: str,
    first_day: str | None,
    last_day: str | None,
    format_name: str,
    data: str | None,
    as_json: bool,
) -> None:
    """Write all rows of a website to a file, or to standard output for `-`.

    The export contains every event that was acknowledged before the command started, and none that
    came later, whether the service runs or not. An interrupted export to a file leaves the
    directory OUTPUT.partial; the same command goes on where it was.
    """
    configure_logging("warning", process="export")
    settings = load_settings({"data_dir": data})
    request = _request(website, table, format_name, first_day, last_day)
    by = operator_name()
    with ProgressLine("Exporting", is_printed_to_files=output != _STANDARD_OUTPUT) as line:
        if output == _STANDARD_OUTPUT:
            export_to_stream(settings, request, sys.stdout.buffer, by=by, progress=line.show)
            return
        exported = export_to_file(settings, request, Path(output), by=by, progress=line.show)
    _print_result(exported, output, as_json=as_json)


def _request(
    website: str, table: str, format_name: str, first_day: str | None, last_day: str | None
) -> ExportRequest:
    try:
        return check_export(
            WebsiteId(website),
            table=table,
            format_name=format_name,
            first_day=first_day,
            last_day=last_day,
        )
    except InvalidQuery as error:
        raise OperatorError(str(error)) from error


def _print_result(exported: Exported, output: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"file": output, "bytes": exported.bytes, "resumed_at": exported.resumed_at})
        return
    before = ""
    if exported.resumed_at:
        before = f", {format_bytes(exported.resumed_at)} of it by an interrupted export"
    click.echo(f"Exported {format_bytes(exported.bytes)} to {output}{before}.")
