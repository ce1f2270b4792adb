"""The types of standard queries, each as the custom query that it equals.

The plans of the service and the table of the reference are made from these definitions.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Final

from msgspec import Struct

from headrace.model.catalog import ALL_ROWS, PAGE_VIEW_NAMES, Aggregate, Operator
from headrace.model.plan import QueryPlan
from headrace.model.tenancy import WebsiteId
from headrace.model.wire import Filter, Query, QueryRequest, Select
from headrace.query.validate.check import check_query

SUMMARY_OUTPUTS: Final = (
    "visitors",
    "sessions",
    "pageViews",
    "events",
    "bounceRate",
    "medianDuration",
)
"""The outputs of `summary` and `timeseries`, in the order of their rows.

`bounceRate` is the share of `bounces` among `sessions`, null without sessions.
"""

ONLINE_MS: Final = 300_000
"""Visitors are online if they had an event within this time."""


class Form(Enum):
    """What a type's answer is made of."""

    SUMMARY = "totals of both tables"
    TIMESERIES = "the same for each bucket of the range"
    GROUPS = "rows"
    ONLINE = "a total of the last minutes"


ONE_OBJECT = frozenset({Form.SUMMARY, Form.ONLINE})
"""The forms that are no rows."""


class Definition(Struct, frozen=True):
    """One type: the queries that it equals, without range, filters of the request and limit.

    A summary and a timeseries have one query for each table, every other form has one query.
    """

    form: Form
    queries: tuple[Query, ...]


def _count(alias: str, *filters: Filter) -> Select:
    return Select(ALL_ROWS, Aggregate.COUNT.value, alias, list(filters) or None)


def _is_set(column: str) -> Filter:
    return Filter(column, Operator.IS_SET.value)


_PAGE_VIEW = Filter("event_name", Operator.IN.value, list(PAGE_VIEW_NAMES))
_VISITORS = Select("anonymous_id", Aggregate.UNIQ.value, "visitors")
_BOUNCES = _count("bounces", Filter("is_bounce", Operator.EQ.value, value=True))
_SUMMARY = (
    Query("events", [_VISITORS, _count("pageViews", _PAGE_VIEW), _count("events")]),
    Query(
        "sessions",
        [
            _count("sessions"),
            _BOUNCES,
            Select("duration", Aggregate.P50.value, "medianDuration"),
        ],
    ),
)


def _groups(
    table: str, columns: tuple[str, ...], selects: list[Select], *filters: Filter
) -> Definition:
    return Definition(Form.GROUPS, (Query(table, selects, list(filters) or None, list(columns)),))


def _of_events(column: str) -> Definition:
    return _groups("events", (column,), [_VISITORS, _count("events")], _is_set(column))


def _of_sessions(*columns: str) -> Definition:
    are_set = [_is_set(column) for column in columns]
    condition = are_set[0] if len(columns) == 1 else Filter(any_of=are_set)
    return _groups("sessions", columns, [_count("sessions"), _VISITORS, _BOUNCES], condition)


STANDARD_TYPES: Mapping[str, Definition] = {
    "summary": Definition(Form.SUMMARY, _SUMMARY),
    "timeseries": Definition(Form.TIMESERIES, _SUMMARY),
    "pages": _groups(
        "events", ("path",), [_count("views"), _VISITORS], _PAGE_VIEW, _is_set("path")
    ),
    "entry_pages": _of_sessions("entry_path"),
    "exit_pages": _of_sessions("exit_path"),
    "referrers": _of_sessions("referrer"),
    "campaigns": _of_sessions("utm_source", "utm_medium", "utm_campaign"),
    "countries": _of_events("country"),
    "browsers": _of_events("browser_name"),
    "systems": _of_events("os_name"),
    "devices": _of_events("device_type"),
    "events": _groups("events", ("event_name",), [_count("events"), _VISITORS]),
    "vitals": _groups(
        "performance",
        ("metric_name",),
        [
            Select("metric_value", Aggregate.P75.value, "p75"),
            Select("metric_value", Aggregate.P50.value, "p50"),
            _count("samples"),
        ],
    ),
    "errors": _groups("errors", ("message",), [_count("errors"), _VISITORS]),
    "online": Definition(Form.ONLINE, (Query("events", [_VISITORS]),)),
}


@cache
def plans_of_type(name: str) -> tuple[QueryPlan, ...]:
    """Return the plans of a type's queries over some day of no website."""
    return tuple(_plan_of(query) for query in STANDARD_TYPES[name].queries)


def _plan_of(query: Query) -> QueryPlan:
    request = QueryRequest(query, start_date="2000-01-01", end_date="2000-01-01")
    return check_query(request, WebsiteId(""), now_ms=0)
