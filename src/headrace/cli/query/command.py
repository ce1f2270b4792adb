"""`headrace query`: sends a query to a running service, saves it, or prints its SQL."""

from collections.abc import Sequence

import click
import msgspec

from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError
from headrace.cli.options import ANY_PATH, WholeNumber
from headrace.cli.query.client import Call
from headrace.cli.query.compose import (
    STANDARD_PATH,
    QueryOptions,
    compose_query,
    compose_saved_query,
)
from headrace.cli.query.execute import Destination, execute, output_options, target_options
from headrace.cli.query.render import FORMATS, STANDARD_FORMATS
from headrace.cli.query.saved import save_query
from headrace.model.catalog import QUERY_LIMITS, TABLES
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Dialect
from headrace.query.sql.compile import compile_query
from headrace.query.standard.check import check_standard, decode_standard
from headrace.query.standard.compile import compile_standard
from headrace.query.standard.definitions import STANDARD_TYPES
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query


@click.command("query")
@click.argument("file", required=False, type=ANY_PATH)
@target_options
@click.option(
    "--standard",
    multiple=True,
    metavar="TYPE",
    help=f"A standard query in the place of --table: {', '.join(STANDARD_TYPES)}. May be repeated, "
    "or list several with commas.",
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
    "--last-days",
    type=WholeNumber(),
    metavar="N",
    help="The last N days, today included, instead of both.",
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
    "--limit",
    type=WholeNumber(),
    help=f"Maximum number of rows.  [default: {QUERY_LIMITS['defaultLimit']}]",
)
@click.option("--offset", type=WholeNumber(), help="Rows to skip.")
@click.option("--fill", is_flag=True, help="Include empty buckets.")
@click.option(
    "--compare",
    metavar="TEXT",
    help="Compare with previous_period, previous_year or 2026-01-01..2026-01-31.",
)
@click.option(
    "--top",
    type=WholeNumber(),
    metavar="N",
    help="With --granularity: the rows of the first N groups alone.",
)
@click.option(
    "--others", is_flag=True, help="With --top: add a row over all others to each bucket."
)
@click.option("--totals", is_flag=True, help="Add a row over all groups.")
@click.option(
    "--save",
    "saved_name",
    metavar="NAME",
    help="Save the query under a name instead of running it, and print the URL of its answer. "
    "Needs a key with the scope manage:data.",
)
@click.option("--rotate", is_flag=True, help="With --save: make a new token for a saved query.")
@output_options
def query_command(
    *,
    file: str | None,
    url: str | None,
    key: str | None,
    website: str | None,
    format_name: str,
    explain: bool,
    saved_name: str | None,
    rotate: bool,
    **written: object,
) -> None:
    """Send a query to a running service.

    The query is given by options, or by a JSON file (`-` is standard input) with the body of
    `POST /v1/query/custom` or only its `query`, or that of `POST /v1/query/standard`. Options
    override the file.
    """
    options = msgspec.convert(written, type=QueryOptions)
    destination = Destination(url, key, website, format_name, explain)
    if saved_name is not None:
        save_query(saved_name, compose_saved_query(file, options), destination, rotate=rotate)
        return
    if rotate:
        raise OperatorError("--rotate needs --save")
    call = compose_query(file, options, SystemClock())
    is_standard = call.path == STANDARD_PATH
    execute(call, destination, _compile, STANDARD_FORMATS if is_standard else FORMATS)


def _compile(
    call: Call, website: WebsiteId, now_ms: int, dialect: Dialect
) -> Sequence[CompiledQuery]:
    body = call.body or b""
    if call.path == STANDARD_PATH:
        return compile_standard(
            check_standard(decode_standard(body), website, now_ms=now_ms), dialect
        ).queries
    return (compile_query(check_query(decode_query(body), website, now_ms=now_ms), dialect),)
