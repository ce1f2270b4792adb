"""`headrace funnel`, `headrace retention` and `headrace values`: the queries beside custom ones."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import click
import msgspec

from headrace.base.clock import SystemClock
from headrace.cli.options import WholeNumber
from headrace.cli.output import JsonObject
from headrace.cli.query.client import Call
from headrace.cli.query.compose import default_date_range, encode_body
from headrace.cli.query.execute import Destination, execute, output_options, target_options
from headrace.cli.query.syntax import read_filter, read_step
from headrace.model.catalog import EVENTS, QUERY_LIMITS, TABLES
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Dialect
from headrace.query.funnel.check import check_funnel, decode_funnel
from headrace.query.funnel.compile import compile_funnel
from headrace.query.retention.check import check_retention, decode_retention
from headrace.query.retention.compile import compile_retention
from headrace.query.sql.compile import compile_query
from headrace.query.validate.parameters import read_parameters
from headrace.query.values.check import VALUES_PARAMETERS, check_values_request

FUNNEL_PATH: Final = "/v1/query/funnel"
RETENTION_PATH: Final = "/v1/query/retention"
VALUES_PATH: Final = "/v1/query/values"

Command = TypeVar("Command", bound=Callable[..., Any])

_RANGE_OPTIONS = (
    click.option("--from", "startDate", metavar="DATE", help="First day, such as 2026-01-01."),
    click.option("--to", "endDate", metavar="DATE", help="Last day, included.  [default: today]"),
    click.option(
        "--last-days",
        "lastDays",
        type=WholeNumber(),
        metavar="N",
        help="The last N days, today included.",
    ),
    click.option("--timezone", metavar="ZONE", help="IANA timezone of the days.  [default: UTC]"),
)
_BY = click.option(
    "--by",
    help="Whose events they are: anonymous_id, session_id or profile_id.  [default: anonymous_id]",
)


def _range_options(command: Command) -> Command:
    for option in reversed(_RANGE_OPTIONS):
        command = option(command)
    return command


@click.command("funnel")
@target_options
@click.option(
    "--step",
    "steps",
    multiple=True,
    required=True,
    metavar="TEXT",
    help="Name and conditions: paid where event_name = purchase where value > 10. Repeat it for "
    f"each step, {QUERY_LIMITS['minFunnelSteps']} to {QUERY_LIMITS['maxFunnelSteps']}.",
)
@click.option(
    "--window",
    type=WholeNumber(),
    metavar="SECONDS",
    help=f"Time from the first step to the last.  [default: {QUERY_LIMITS['defaultFunnelWindow']}]",
)
@_BY
@click.option("--group-by", "groupBy", metavar="COLUMN", help="Its value at the first step.")
@_range_options
@output_options
def funnel_command(
    *,
    url: str | None,
    key: str | None,
    website: str | None,
    format_name: str,
    explain: bool,
    steps: tuple[str, ...],
    **options: object,
) -> None:
    """Show how many take each step in order, and how long they need.

    Without days it takes the last seven.
    """
    read = [msgspec.to_builtins(read_step(text, EVENTS)) for text in steps]
    call = _body_call(FUNNEL_PATH, {"steps": read}, options)
    execute(call, Destination(url, key, website, format_name, explain), _compile_funnel)


@click.command("retention")
@target_options
@click.option(
    "--first",
    "first",
    multiple=True,
    metavar="TEXT",
    help="Condition for the events that begin a cohort: event_name = signup. May be repeated."
    "  [default: any event]",
)
@click.option(
    "--return",
    "returning",
    multiple=True,
    metavar="TEXT",
    help="Condition for the events that count as coming back. May be repeated."
    "  [default: any event]",
)
@click.option(
    "--granularity", default="weekly", help="daily, weekly or monthly.  [default: weekly]"
)
@click.option(
    "--periods",
    type=WholeNumber(),
    default=8,
    metavar="N",
    help=f"Periods to show, 1 to {QUERY_LIMITS['maxPeriods']}.  [default: 8]",
)
@_BY
@_range_options
@output_options
def retention_command(
    *,
    url: str | None,
    key: str | None,
    website: str | None,
    format_name: str,
    explain: bool,
    first: tuple[str, ...],
    returning: tuple[str, ...],
    **options: object,
) -> None:
    """Show how many of each cohort come back, period by period.

    Without days it takes the last seven.
    """
    events = {"first": _event(first), "return": _event(returning)}
    call = _body_call(RETENTION_PATH, events, options)
    execute(call, Destination(url, key, website, format_name, explain), _compile_retention)


@click.command("values")
@target_options
@click.option("--table", required=True, help=f"One of {', '.join(table.name for table in TABLES)}.")
@click.option("--field", required=True, metavar="COLUMN", help="The column, or properties.KEY.")
@click.option("--search", metavar="TEXT", help="A part of the values, in any case.")
@click.option(
    "--limit",
    type=WholeNumber(),
    help=f"Number of values.  [default: {QUERY_LIMITS['defaultValues']}]",
)
@_range_options
@output_options
def values_command(
    *,
    url: str | None,
    key: str | None,
    website: str | None,
    format_name: str,
    explain: bool,
    **options: object,
) -> None:
    """Show the most frequent values of a column.

    Without days it takes the last 30.
    """
    given = {name: str(value) for name, value in options.items() if value is not None}
    call = Call(None, VALUES_PATH, given)
    execute(call, Destination(url, key, website, format_name, explain), _compile_values)


def _event(conditions: tuple[str, ...]) -> JsonObject:
    filters = [msgspec.to_builtins(read_filter(text, EVENTS)) for text in conditions]
    return {"filters": filters}


def _body_call(path: str, body: JsonObject, options: dict[str, Any]) -> Call:
    """Return the call with the options that were given and the default days."""
    body |= {name: value for name, value in options.items() if value is not None}
    body |= default_date_range(body, SystemClock())
    return Call(encode_body(body), path)


def _compile_funnel(
    call: Call, website: WebsiteId, now_ms: int, dialect: Dialect
) -> Sequence[CompiledQuery]:
    plan = check_funnel(decode_funnel(call.body or b""), website, now_ms=now_ms)
    return (compile_funnel(plan, dialect),)


def _compile_retention(
    call: Call, website: WebsiteId, now_ms: int, dialect: Dialect
) -> Sequence[CompiledQuery]:
    plan = check_retention(decode_retention(call.body or b""), website, now_ms=now_ms)
    return (compile_retention(plan, dialect),)


def _compile_values(
    call: Call, website: WebsiteId, now_ms: int, dialect: Dialect
) -> Sequence[CompiledQuery]:
    parameters = read_parameters(
        urlencode(call.parameters, errors="replace").encode(), VALUES_PARAMETERS
    )
    return (compile_query(check_values_request(parameters, website, now_ms=now_ms), dialect),)
