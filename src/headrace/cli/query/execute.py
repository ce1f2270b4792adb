"""What all query commands do with a query: print its SQL, or send it and print the result."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
from msgspec import Struct

from headrace.base.clock import SystemClock
from headrace.base.errors import InvalidQuery, OperatorError
from headrace.base.settings import load_settings
from headrace.cli.options import base_url
from headrace.cli.output import JsonObject, print_json
from headrace.cli.query.client import Call, QueryTarget, send_query
from headrace.cli.query.render import FORMATS, OutputFormat
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Dialect
from headrace.wiring.sql_text import write_sql
from headrace.wiring.store_address import store_dialect

_PLACEHOLDER_WEBSITE = "WEBSITE_ID"

Compile = Callable[[Call, WebsiteId, int, Dialect], Sequence[CompiledQuery]]
"""Compiles a call as the service does, at a time in epoch milliseconds."""

Command = TypeVar("Command", bound=Callable[..., Any])


class Destination(Struct, frozen=True):
    """Where a query goes and how its result is printed, as the options were written."""

    url: str | None
    key: str | None
    website: str | None
    format_name: str
    explain: bool


_TARGET_OPTIONS = (
    click.option(
        "--url",
        envvar="HEADRACE_URL",
        help="URL of the service.  [default: HEADRACE_URL, or the address in the settings]",
    ),
    click.option(
        "--key",
        envvar="HEADRACE_API_KEY",
        help="API key with the scope read:data; not needed for a public website.  [default: "
        "HEADRACE_API_KEY]",
    ),
    click.option(
        "--website",
        envvar="HEADRACE_WEBSITE_ID",
        metavar="ID",
        help="The website to query.  [default: HEADRACE_WEBSITE_ID]",
    ),
)
_OUTPUT_OPTIONS = (
    click.option(
        "--format",
        "format_name",
        type=click.Choice(list(FORMATS)),
        default="table",
        help="Output format.  [default: table]",
    ),
    click.option(
        "--explain",
        is_flag=True,
        help="Print the SQL for the configured store, in JSON with its parameters apart, and send "
        "nothing; needs neither a service nor a key.",
    ),
)


def target_options(command: Command) -> Command:
    """Add the options for the service, the website and the key."""
    return _add(command, _TARGET_OPTIONS)


def output_options(command: Command) -> Command:
    """Add the options for the format and for the SQL."""
    return _add(command, _OUTPUT_OPTIONS)


def _add(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def execute(
    call: Call,
    destination: Destination,
    compile_call: Compile,
    formats: Mapping[str, OutputFormat] = FORMATS,
) -> None:
    """Send a query and print its result, or print its SQL."""
    if destination.explain:
        website = WebsiteId(destination.website or _PLACEHOLDER_WEBSITE)
        dialect = store_dialect(load_settings())
        try:
            queries = compile_call(call, website, SystemClock().now_ms(), dialect)
        except InvalidQuery as error:
            raise OperatorError(str(error)) from error
        _print_explanations(queries, destination.format_name)
        return
    output_format = formats.get(destination.format_name)
    if output_format is None:
        raise OperatorError(f"this query has no {destination.format_name} format")
    target = query_target(destination.url, destination.key, destination.website)
    output_format.show(send_query(target, call, output_format.media_type))


def query_target(url: str | None, key: str | None, website: str | None) -> QueryTarget:
    """Return where a query goes. Raises `OperatorError` without a website."""
    if not website:
        raise OperatorError("no website is given: use --website or HEADRACE_WEBSITE_ID")
    return QueryTarget(url or base_url(load_settings()), website, (key or "").strip() or None)


def _print_explanations(queries: Sequence[CompiledQuery], format_name: str) -> None:
    """Print each statement of a query; as JSON one object, or an array of several."""
    if format_name == "csv":
        raise OperatorError("--explain has no CSV format: use --format table or json")
    if format_name == "json":
        explained: list[JsonObject] = [
            {"sql": query.sql, "parameters": query.parameters, "columns": _column_names(query)}
            for query in queries
        ]
        print_json(explained[0] if len(explained) == 1 else explained)
        return
    click.echo("\n".join(map(write_sql, queries)), nl=False)


def _column_names(query: CompiledQuery) -> Mapping[str, str]:
    return {f"c{index}": output.name for index, output in enumerate(query.outputs)}
