"""`headrace audit`: who changed what."""

import click

from headrace.base.settings import load_settings
from headrace.cli.directory import directory_label, list_from_directory
from headrace.cli.options import WholeNumber, data_options
from headrace.cli.output import format_short_timestamp, print_json, print_table
from headrace.formats.directory_objects import audit_object
from headrace.model.audit import DEFAULT_AUDIT_LINES, MAX_AUDIT_LINES, AuditLine, AuditLineId


@click.command("audit")
@click.option(
    "--limit",
    type=WholeNumber(1, MAX_AUDIT_LINES),
    default=DEFAULT_AUDIT_LINES,
    show_default=True,
    help=f"Number of lines, 1 to {MAX_AUDIT_LINES}.",
)
@click.option("--before", metavar="ID", help="Only lines before this one.")
@data_options
def audit_command(limit: int, before: str | None, data: str | None, as_json: bool) -> None:
    """List who changed what, newest first; --json with the objects before and after.

    Lines are never deleted. Erasing a website takes its name out of its lines.
    """
    settings = load_settings({"data_dir": data})
    found = list_from_directory(
        settings,
        lambda directory: directory.audit_log.lines(
            limit=limit, before=None if before is None else AuditLineId(before)
        ),
    )
    if as_json:
        print_json([audit_object(line) for line in found])
    elif found:
        headers = ("id", "time", "by", "action", "object", "changed")
        print_table(headers, [_row(line) for line in found])
    else:
        click.echo(f"{directory_label(settings)} has no audit log: nothing was changed.")


def _row(line: AuditLine) -> tuple[str, ...]:
    return (
        line.id,
        format_short_timestamp(line.time_ms),
        line.by,
        line.change.action.value,
        line.change.object_id or "-",
        ", ".join(_changed_fields(line)) or "-",
    )


def _changed_fields(line: AuditLine) -> list[str]:
    """Return the names of the fields that a change of an object changed."""
    before, after = line.change.before, line.change.after
    if before is None or after is None:
        return []
    return [name for name, value in after.items() if before.get(name) != value]
