"""`headrace subject-access`."""

import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO, Final

import click

from headrace.base.errors import OperatorError, system_reason
from headrace.base.logs import configure_logging
from headrace.base.settings import load_settings
from headrace.cli.options import ANY_PATH, data_options
from headrace.cli.output import pluralize, print_json
from headrace.cli.selectors import given_selectors, selector_options
from headrace.wiring.commands.subject_access import show_subject

_STANDARD_OUTPUT: Final = "-"
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@click.command("subject-access")
@click.argument("output", metavar="[OUTPUT|-]", type=ANY_PATH, default=_STANDARD_OUTPUT)
@click.option("--website", required=True, metavar="ID", help="Website whose rows are shown.")
@selector_options
@data_options
def subject_access_command(
    *,
    output: str,
    website: str,
    with_visitors: bool,
    data: str | None,
    as_json: bool,
    **texts: str | None,
) -> None:
    """Show everything that is stored of a visitor, a session, a profile or an event.

    Writes a JSON object for each row to a file that does not exist yet, or to standard output: the
    table and all columns. Rows that retention hides, and rejected ones, are included.
    """
    configure_logging("warning", process="subject-access")
    settings = load_settings({"data_dir": data})
    selectors = given_selectors(texts, with_visitors=with_visitors)

    def show_in(file: BinaryIO) -> int:
        return show_subject(settings, website, selectors, file, with_visitors=with_visitors)

    if output == _STANDARD_OUTPUT:
        show_in(sys.stdout.buffer)
        return
    with _new_private_file(Path(output)) as file:
        count = show_in(file)
    if as_json:
        print_json({"file": output, "rows": count})
    else:
        click.echo(f"Wrote {pluralize(count, 'row')} to {output}.")


@contextlib.contextmanager
def _new_private_file(path: Path) -> Generator[BinaryIO]:
    """Create a file, and remove it where not all rows were written: the next call creates it."""
    try:
        descriptor = os.open(path, _NEW, 0o600)
    except FileExistsError as error:
        raise click.UsageError(f"the file {path} exists") from error
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {system_reason(error)}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise
