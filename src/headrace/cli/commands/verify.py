"""`headrace verify`."""

import click

from headrace.base.settings import load_settings
from headrace.base.telemetry import configure_logging
from headrace.cli.options import data_options
from headrace.cli.output import counted, print_json
from headrace.model.integrity import Findings
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
    settings = load_settings({"data": data})
    findings = verify(settings)
    if as_json:
        print_json(
            {
                "ok": not findings.problems,
                "problems": findings.problems,
                "checked": {name: getattr(findings, name) for name in _CHECKED},
            }
        )
    else:
        _print_for_people(findings)
    context.exit(1 if findings.problems else 0)


def _print_for_people(findings: Findings) -> None:
    for problem in findings.problems:
        click.echo(f"{problem.part}: {problem.problem}")
    if not findings.problems:
        click.echo(
            f"All is well: {counted(findings.rows, 'row')} in {counted(findings.parts, 'part')}, "
            f"{counted(findings.records, 'record')} in {counted(findings.logs, 'log')}."
        )
