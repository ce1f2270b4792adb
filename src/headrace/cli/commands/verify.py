"""`headrace verify`."""

import click

from headrace.base.logs import configure_logging
from headrace.base.settings import load_settings
from headrace.cli.options import data_options
from headrace.cli.output import pluralize, print_json
from headrace.model.integrity import IntegrityReport
from headrace.wiring.commands.verify import accept_losses, verify

_CHECKED = ("logs", "records", "parts", "rows")


@click.command("verify")
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="Rebuild the rollup of sessions and profiles from the events where it is broken.",
)
@click.option(
    "--accept-loss",
    "accepts_loss",
    is_flag=True,
    help="Accept that the store lacks the events that were reported as lost: queries work again.",
)
@data_options
@click.pass_context
def verify_command(
    context: click.Context, data: str | None, as_json: bool, repairs: bool, accepts_loss: bool
) -> None:
    """Check the integrity of a data directory and its store. The service must be stopped.

    Exits with code 1 if anything is damaged or missing.
    """
    configure_logging("critical", process="verify")  # the report below has the details
    settings = load_settings({"data_dir": data})
    if accepts_loss:
        accept_losses(settings)
    report = verify(settings, repairs=repairs)
    if as_json:
        print_json(
            {
                "ok": not report.issues,
                "problems": report.issues,
                "notes": report.notes,
                "checked": {name: getattr(report, name) for name in _CHECKED},
            }
        )
    else:
        _print_text(report)
    context.exit(1 if report.issues else 0)


def _print_text(report: IntegrityReport) -> None:
    for issue in report.issues:
        click.echo(f"{issue.part}: {issue.problem}")
    for note in report.notes:
        click.echo(f"note: {note.part}: {note.problem}")
    if not report.issues:
        click.echo(
            f"No problems found: {pluralize(report.rows, 'row')} in "
            f"{pluralize(report.parts, 'part')}, {pluralize(report.records, 'record')} in "
            f"{pluralize(report.logs, 'log')}."
        )
