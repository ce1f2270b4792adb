r"""The names and the keys of properties among a website's latest events, most frequent first.

A key has the kinds of its values as bits: a text is 1, a number 2, a boolean 4, an object or array
8, null 0. The engine reads integers past 64 bits as texts of their digits, so texts of digits are
marked before; then digits without the mark are a number (see `query.sql.json_properties`).
"""

from typing import Final

from headrace.model.catalog import EVENTS, QUERY_LIMITS, Aggregate
from headrace.model.data_retention import Cutoffs
from headrace.model.plan import (
    CompiledQuery,
    DateRange,
    Output,
    OutputKind,
    PlannedSelect,
    QueryPlan,
)
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import Dialect
from headrace.query.sql.bots import NOT_A_BOT
from headrace.query.sql.builder import Parameters, clause, statement, subquery
from headrace.query.sql.json_properties import quote_big_integers
from headrace.query.sql.sources.visible_rows import bind_visible_rows
from headrace.query.sql.time_buckets import bind_range, range_conditions
from headrace.query.validate.columns import find_column

KINDS: Final = ("text", "number", "boolean", "json")
"""The kinds of a property's values, by bit."""

_MARKED_TEXTS: Final = r"""if(
    match(properties, '[0-9]{19}'),
    replaceRegexpAll(properties, '"(-?[1-9][0-9]{18,})"([,}\\]])', '"(text)\\1"\\2'),
    properties
)"""
_LONG_NUMBER: Final = """match(entry.2, '^"-?[1-9][0-9]{18,}"$')"""
_KIND: Final = f"""multiIf(
    startsWith(entry.2, '"'), if({_LONG_NUMBER}, 2, 1),
    entry.2 IN ('true', 'false'), 4,
    left(entry.2, 1) IN ('{{', '['), 8,
    entry.2 = 'null', 0,
    2
)"""


def event_names(website_id: WebsiteId, days: DateRange, cutoffs: Cutoffs) -> QueryPlan:
    """Return the query for the names of events, how many there are, and when the last one was."""
    time = find_column(EVENTS, EVENTS.time_column)
    return QueryPlan(
        website_id=website_id,
        table=EVENTS,
        selects=(
            PlannedSelect(None, Aggregate.COUNT, "count"),
            PlannedSelect(time, Aggregate.LATEST, "lastSeen"),
        ),
        filters=(),
        group_by=(find_column(EVENTS, "event_name"),),
        range=days,
        granularity=None,
        order_by=(),
        limit=QUERY_LIMITS["maxSchemaNames"],
        offset=0,
        fill=False,
        cutoff_ms=cutoffs.of_table(EVENTS),
    )


def compile_property_keys(
    website_id: WebsiteId, days: DateRange, cutoffs: Cutoffs, dialect: Dialect
) -> CompiledQuery:
    """Return the statement for the top-level keys of properties.

    Its columns are the key, the bits of its kinds, and in how many events it has a value.
    """
    parameters = Parameters()
    visible = bind_visible_rows(website_id, cutoffs.of_table(EVENTS), parameters)
    range_parameters = bind_range(days, parameters, is_bucketed=False)
    limit = parameters.bind(QUERY_LIMITS["maxSchemaNames"], "UInt64")
    document = _MARKED_TEXTS
    if dialect.needs_big_int_workaround:
        document = quote_big_integers(document)
    entries = statement(
        f"SELECT arrayJoin(JSONExtractKeysAndValuesRaw({document})) AS entry",
        f"FROM {EVENTS.name}",
        clause(
            "WHERE",
            " AND",
            [
                *visible.stored_rows(),
                *range_conditions("time", range_parameters),
                NOT_A_BOT,
                "properties != ''",
            ],
        ),
    )
    sql = statement(
        clause("WITH", ",", [f"{_KIND} AS kind"]),
        clause("SELECT", ",", ["entry.1 AS c0", "groupBitOr(kind) AS c1", "count() AS c2"]),
        f"FROM {subquery(entries)}",
        "WHERE kind != 0",
        "GROUP BY c0",
        clause("ORDER BY", ",", ["c2 DESC", "c0 ASC"]),
        f"LIMIT {limit}",
    )
    outputs = (
        Output("key", OutputKind.TEXT),
        Output("kinds", OutputKind.NUMBER),
        Output("count", OutputKind.NUMBER),
    )
    return CompiledQuery(sql, parameters.values, outputs, website_id)
