"""`headrace import`."""

import gc
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from headrace.base.errors import OperatorError
from headrace.base.logs import configure_logging
from headrace.base.settings import data_path, load_settings
from headrace.cli.directory import operator_name
from headrace.cli.options import data_options
from headrace.cli.output import format_bytes, pluralize, print_json
from headrace.cli.progress import ProgressLine
from headrace.model.imports import (
    MAX_REPORTED,
    ImportFormat,
    ImportRequest,
    ImportTotals,
    RefusedLine,
)
from headrace.model.storage import TABLE_OF_KIND
from headrace.model.tenancy import WebsiteId
from headrace.wiring.commands.import_sources import SourceFile, open_files, open_report
from headrace.wiring.commands.imports import import_files

_KINDS = {table.name: kind for kind, table in TABLE_OF_KIND.items()}
_SHOWN_REFUSED: Final = 10
_EXIT_SOME_REFUSED: Final = 1
_EXIT_NOTHING_READ: Final = 2
_GC_THRESHOLDS: Final = (50_000, 20, 100)
"""A chunk makes many objects and no cycles; looking for cycles took a third of its time."""


@click.command("import")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(readable=False, path_type=Path),
)
@click.option("--website", required=True, metavar="ID", help="Website that gets the events.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice([one.value for one in ImportFormat]),
    required=True,
    help="Format of the files.",
)
@click.option(
    "--table",
    type=click.Choice(list(_KINDS)),
    default=next(iter(_KINDS)),
    show_default=True,
    help="Table of an export.",
)
@click.option("--assets", is_flag=True, help="Take what is no page of an access log, as asset.")
@click.option("--dry-run", is_flag=True, help="Check all lines and store nothing.")
@click.option(
    "--report", metavar="FILE", type=Path, help="File for all lines that are not taken, as NDJSON."
)
@data_options
def import_command(
    *,
    files: Sequence[Path],
    website: str,
    format_name: str,
    table: str,
    assets: bool,
    dry_run: bool,
    report: Path | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Store the events of files in a website, whether the service runs or not.

    Files that gzip or zstd compressed are decompressed. Events that the website has already are not
    stored again, so the same command can be repeated after an interruption. Exit code 0: every line
    was taken or is stored already; 1: some lines were refused; 2: a file cannot be read.
    """
    configure_logging("warning", process="import")
    gc.set_threshold(*_GC_THRESHOLDS)
    settings = load_settings({"data_dir": data})
    import_format = ImportFormat(format_name)
    request = ImportRequest(
        format=import_format,
        website_id=WebsiteId(website),
        event_kind=_KINDS[table],
        is_dry_run=dry_run,
        takes_assets=assets,
    )
    first_refused: list[RefusedLine] = []
    with ExitStack() as stack:
        sources = _open_or_exit(import_format, files, stack)
        file = None if report is None else stack.enter_context(open_report(report, files))

        def on_refused(refused: RefusedLine) -> None:
            if len(first_refused) < MAX_REPORTED:
                first_refused.append(refused)
            if file is not None:
                file.add(refused)

        line = stack.enter_context(
            ProgressLine("Importing", format_amount=format_bytes, is_printed_to_files=True)
        )
        totals = import_files(
            settings,
            request,
            sources,
            by=operator_name(),
            on_refused=on_refused,
            on_wait=_WaitNotice(line, data_path(settings)).show,
            progress=line.show,
        )
    _print_result(totals, first_refused, as_json=as_json, is_dry_run=dry_run)
    if totals.refused:
        click.get_current_context().exit(_EXIT_SOME_REFUSED)


class _WaitNotice:
    """Prints why an import waits: each reason once until there is another one."""

    def __init__(self, line: ProgressLine, data: Path) -> None:
        self._line = line
        self._data = data
        self._reason = ""

    def show(self, reason: str) -> None:
        """Print a reason, with the free space of the disk, which is what most reasons come from."""
        if reason == self._reason:
            return
        self._reason = reason
        free = format_bytes(shutil.disk_usage(self._data).free)
        self._line.note(f"headrace: the import waits: {reason} (free on the disk: {free})")


def _open_or_exit(
    import_format: ImportFormat, files: Sequence[Path], stack: ExitStack
) -> Sequence[SourceFile]:
    try:
        return stack.enter_context(open_files(import_format, files))
    except OperatorError as error:
        click.echo(f"headrace: {error}", err=True)
        click.get_current_context().exit(_EXIT_NOTHING_READ)


def _print_result(
    totals: ImportTotals, refused: Sequence[RefusedLine], *, as_json: bool, is_dry_run: bool
) -> None:
    if as_json:
        print_json(
            {
                "lines": totals.lines,
                "stored": totals.stored,
                "repeated": totals.repeated,
                "expired": totals.expired,
                "erased": totals.erased,
                "skipped": totals.skipped,
                "refused": refused,
            }
        )
        return
    stored = "would be stored" if is_dry_run else "stored"
    click.echo(
        f"{pluralize(totals.lines, 'line')}: {totals.stored} {stored}, {totals.repeated} repeated, "
        f"{totals.expired} expired, {totals.erased} erased, {totals.skipped} skipped, "
        f"{totals.refused} refused."
    )
    for one in refused[:_SHOWN_REFUSED]:
        click.echo(f"{one.file}:{one.line}: {one.reason}", err=True)
    if totals.refused > _SHOWN_REFUSED:
        click.echo(f"… and {totals.refused - _SHOWN_REFUSED} more: see --report", err=True)
