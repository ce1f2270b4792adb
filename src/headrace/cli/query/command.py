"""`headrace query`: sends a query to a running service, or prints its SQL."""

import click
import msgspec

from headrace.base.clock import SystemClock
from headrace.base.errors import InvalidQuery, OperatorError
from headrace.base.settings import load_settings
from headrace.cli.options import base_url
from headrace.cli.output import print_json
from headrace.cli.query.client import QueryTarget, send_query
from headrace.cli.query.compose import QueryOptions, compose_query
from headrace.cli.query.render import FORMATS
from headrace.model.catalog import QUERY_LIMITS, TABLES
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Dialect
from headrace.query.sql.compile import compile_query
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query
from headrace.wiring.store_address import store_dialect

_PLACEHOLDER_WEBSITE = "WEBSITE_ID"


@click.command("query")
@click.argument("file", required=False)
@click.option(
    "--url",
    envvar="HEADRACE_URL",
    help="URL of the service.  [default: HEADRACE_URL, or the address in the settings]",
)
@click.option(
    "--key",
    envvar="HEADRACE_API_KEY",
    help="API key with the scope read:data; not needed for a public website.  [default: "
    "HEADRACE_API_KEY]",
)
@click.option(
    "--website",
    envvar="HEADRACE_WEBSITE_ID",
    metavar="ID",
    help="The website to query.  [default: HEADRACE_WEBSITE_ID]",
)
@click.option("--table", help=f"One of {', '.join(table.name for table in TABLES)}.")
@click.option(
    "--select",
    "selects",
    multiple=True,
    metavar="TEXT",
    help="Aggregate: count, uniq(anonymous_id), avg(value) as mean where country = DE. May be "
    "repeated.  [default: count]",
)
@click.option(
    "--where",
    "filters",
    multiple=True,
    metavar="TEXT",
    help="Filter: country = DE, path starts_with /blog, country in DE,AT, referrer is_set. May be "
    "repeated; filters are joined by AND.",
)
@click.option(
    "--where-any",
    "any_filters",
    multiple=True,
    metavar="TEXT",
    help="Filter, one of those that are joined by OR. May be repeated.",
)
@click.option(
    "--group-by",
    "groups",
    multiple=True,
    metavar="COLUMN",
    help="Column to group by. May be repeated, or list several with commas.",
)
@click.option(
    "--from",
    "first",
    metavar="DATE",
    help="First day, such as 2026-01-01.  [default: six days before the last]",
)
@click.option(
    "--last-days", type=int, metavar="N", help="The last N days, today included, instead of both."
)
@click.option("--to", "last", metavar="DATE", help="Last day, included.  [default: today]")
@click.option(
    "--timezone",
    metavar="ZONE",
    help="IANA timezone of the days, such as Europe/Berlin.  [default: UTC]",
)
@click.option("--granularity", help="Size of time buckets: hourly, daily, weekly or monthly.")
@click.option(
    "--having",
    multiple=True,
    metavar="TEXT",
    help="Condition for rows of the result: visitors > 10. May be repeated.",
)
@click.option(
    "--order-by",
    "order",
    multiple=True,
    metavar="TEXT",
    help="Output name with asc or desc: visitors desc. May be repeated, or list several with "
    "commas.",
)
@click.option(
    "--limit", type=int, help=f"Maximum number of rows.  [default: {QUERY_LIMITS['defaultLimit']}]"
)
@click.option("--offset", type=int, help="Rows to skip.")
@click.option("--fill", is_flag=True, help="Include empty buckets.")
@click.option(
    "--compare",
    metavar="TEXT",
    help="Compare with previous_period, previous_year or 2026-01-01..2026-01-31.",
)
@click.option("--totals", is_flag=True, help="Add a row over all groups.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default="table",
    help="Output format.  [default: table]",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Print the SQL and its parameters for the configured store, without sending the query; "
    "needs neither a service nor a key.",
)
def query_command(
    *,
    file: str | None,
    url: str | None,
    key: str | None,
    website: str | None,
    format_name: str,
    explain: bool,
    **options: object,
) -> None:
    """Send a query to a running service.

    The query is given by options, or by a JSON file (`-` is standard input) with the body of
    `POST /v1/query/custom` or only its `query`. Options override the file.
    """
    query_options = msgspec.convert(options, type=QueryOptions)
    body = compose_query(file, query_options, SystemClock())
    if explain:
        dialect = store_dialect(load_settings())
        _print_explanation(_compile(body, website or _PLACEHOLDER_WEBSITE, dialect), format_name)
        return
    if not website:
        raise OperatorError("no website is given: use --website or HEADRACE_WEBSITE_ID")
    target = QueryTarget(url or base_url(load_settings()), website, (key or "").strip() or None)
    output_format = FORMATS[format_name]
    output_format.show(send_query(target, body, output_format.media_type))


def _compile(body: bytes, website: str, dialect: Dialect) -> CompiledQuery:
    """Compile as the service does. Raises `OperatorError` with the message of its error."""
    try:
        now_ms = SystemClock().now_ms()
        plan = check_query(decode_query(body), WebsiteId(website), now_ms=now_ms)
        return compile_query(plan, dialect)
    except InvalidQuery as error:
        raise OperatorError(str(error)) from error


def _print_explanation(query: CompiledQuery, format_name: str) -> None:
    """Print SQL that can be run: columns and parameters are comments."""
    if format_name == "csv":
        raise OperatorError("--explain has no CSV format: use --format table or json")
    outputs = {f"c{index}": output.name for index, output in enumerate(query.outputs)}
    if format_name == "json":
        print_json({"sql": query.sql, "parameters": query.parameters, "columns": outputs})
        return
    click.echo(query.sql)
    for title, values in (("Columns", outputs), ("Parameters", query.parameters)):
        click.echo(f"\n-- {title}")
        for name, value in values.items():
            click.echo(f"-- {name} = {msgspec.json.encode(value).decode()}")
