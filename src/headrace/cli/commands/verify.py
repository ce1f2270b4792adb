"""`headrace verify`."""

import click

from headrace.base.settings import load_settings
from headrace.base.telemetry import configure_logging
from headrace.cli.options import data_options
from headrace.cli.output import pluralize, print_json
from headrace.model.integrity import IntegrityReport
from headrace.wiring.verify import verify

_CHECKED = ("logs", "records", "parts", "rows")


@click.command("verify")
@data_options
@click.pass_context
def verify_command(context: click.Context, data: str | None, as_json: bool) -> None:
    """Read everything that is kept and tell what is wrong; the service must be stopped.

    Ends with exit code 1 where something is.
    """
    configure_logging("critical", process="verify")  # what is wrong is told below
    settings = load_settings({"data_dir": data})
    report = verify(settings)
    if as_json:
        print_json(
            {
                "ok": not report.issues,
                "problems": report.issues,
                "checked": {name: getattr(report, name) for name in _CHECKED},
            }
        )
    else:
        _print_text(report)
    context.exit(1 if report.issues else 0)


def _print_text(report: IntegrityReport) -> None:
    for issue in report.issues:
        click.echo(f"{issue.part}: {issue.problem}")
    if not report.issues:
        click.echo(
            f"All is well: {pluralize(report.rows, 'row')} in {pluralize(report.parts, 'part')}, "
            f"{pluralize(report.records, 'record')} in {pluralize(report.logs, 'log')}."
        )
