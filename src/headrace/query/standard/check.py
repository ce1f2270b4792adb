"""Check the body of a standard query and make its plan; the first error rejects it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import EVENTS, QUERY_LIMITS, Operator, Table
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.model.plan import (
    DateRange,
    Granularity,
    PlannedCondition,
    PlannedFilter,
    QueryPlan,
)
from headrace.model.tenancy import WebsiteId
from headrace.model.wire_analyses import StandardRequest
from headrace.query.standard.definitions import (
    ONLINE_MS,
    STANDARD_TYPES,
    Form,
    plans_of_type,
)
from headrace.query.standard.plan import Breakdown, StandardPlan
from headrace.query.validate.columns import find_column
from headrace.query.validate.compare import check_compare
from headrace.query.validate.conditions.filters import (
    CheckedCondition,
    check_filters,
    resolve_datetimes,
)
from headrace.query.validate.dates import check_period, check_timezone, resolve_period
from headrace.query.validate.day_range import buckets_of, range_of_days
from headrace.query.validate.decode_body import (
    BodyType,
    check_filter_keys,
    check_keys,
    decode_body,
)
from headrace.query.validate.lengths import check_length, parse_whole_number
from headrace.query.validate.pagination import check_granularity
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json
from headrace.query.validate.synonyms import TYPE_SYNONYMS

STANDARD = BodyType(StandardRequest, {"filters": wire.Filter, "compare": wire.Compare})

_ONLINE_DAYS = 2  # the last five minutes may have begun yesterday
_NAMES_A_TABLE = frozenset({QueryErrorCode.INVALID_COLUMN, QueryErrorCode.NOT_FILTERABLE})


def decode_standard(body: bytes) -> StandardRequest:
    """Decode a body. Raises `InvalidQuery`: `Invalid request body` with the error and its path."""
    request = decode_body(body, STANDARD)
    check_keys(request.compare, "compare", STANDARD)
    check_filter_keys(request.filters or (), "filters")
    return request


def check_standard(
    request: StandardRequest,
    website_id: WebsiteId,
    cutoffs: Cutoffs = NO_CUTOFFS,
    *,
    now_ms: int,
) -> StandardPlan:
    """Return the plan of a standard query over the rows that the cutoffs leave.

    `now_ms` is the time of the request, which decides what the last days and minutes are.

    Raises `InvalidQuery` for the first error.
    """
    types = _check_types(request.types)
    filters = _check_filters(types, request.filters or ())
    period = check_period(request.start_date, request.end_date, request.last_days)
    zone = check_timezone(request.timezone)
    granularity = check_granularity(EVENTS, request.granularity) or Granularity.DAILY
    limit = _check_limit(request.limit)
    first, last = resolve_period(period, zone, now_ms)
    days = range_of_days(first, last, zone)
    if "timeseries" in types:
        _check_number_of_buckets(days, granularity)
    compared_dates = check_compare(request.compare, first, last)
    compared = None if compared_dates is None else range_of_days(*compared_dates, zone)
    if "timeseries" in types and compared is not None:
        _check_number_of_buckets(compared, granularity, of="compared timeseries")
    scope = _Scope(
        website_id=website_id,
        cutoffs=cutoffs,
        filters={name: resolve_datetimes(checked, zone) for name, checked in filters.items()},
        range=days,
        compare=compared,
    )
    online_days = range_of_days(*resolve_period(_ONLINE_DAYS, zone, now_ms), zone)
    return StandardPlan(
        types=types,
        limit=limit,
        compare=scope.compare,
        summary=_plan_summary(types, scope, granularity),
        breakdowns=_plan_breakdowns(types, scope, limit),
        online=_plan_online(scope._replace(range=online_days, compare=None), now_ms)
        if "online" in types
        else None,
    )


def _check_types(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        raise _invalid_types(": at least one is required")
    check_length(len(names), "maxTypes", QueryErrorCode.INVALID_TYPES)
    for index, name in enumerate(names):
        if name not in STANDARD_TYPES:
            hint = did_you_mean_one_of(name, STANDARD_TYPES, TYPE_SYNONYMS)
            raise _invalid_types(f" {quote_json(name)}{hint}")
        if name in names[:index]:
            raise _invalid_types(f" {quote_json(name)}: given twice")
    return tuple(names)


def _invalid_types(detail: str) -> InvalidQuery:
    return InvalidQuery(QueryErrorCode.INVALID_TYPES, detail)


def _check_filters(
    types: Sequence[str], filters: Sequence[wire.Filter]
) -> Mapping[str, tuple[CheckedCondition, ...]]:
    """Return the conditions for each table of the types, by its name."""
    checked: dict[str, tuple[CheckedCondition, ...]] = {}
    for name in types:
        for plan in plans_of_type(name):
            if plan.table.name not in checked:
                checked[plan.table.name] = _check_filters_of(name, plan.table, filters)
    return checked


def _check_filters_of(
    type_name: str, table: Table, filters: Sequence[wire.Filter]
) -> tuple[CheckedCondition, ...]:
    try:
        return check_filters(table, filters, "filters")
    except InvalidQuery as error:
        if error.code not in _NAMES_A_TABLE:
            raise
        reason = f"{error.reason}; type {quote_json(type_name)} reads this table"
        raise InvalidQuery(error.code, error.detail, reason, error.path) from None


def _check_limit(value: object) -> int:
    """Return the maximum number of rows of a type; one over `maxTypeLimit` is reduced to it."""
    if value is None:
        return QUERY_LIMITS["defaultTypeLimit"]
    limit = parse_whole_number(value)
    if limit is None or limit < 1:
        raise InvalidQuery(QueryErrorCode.INVALID_LIMIT, ": must be a whole number from 1")
    return min(limit, QUERY_LIMITS["maxTypeLimit"])


def _check_number_of_buckets(
    days: DateRange, granularity: Granularity, *, of: str = "timeseries"
) -> None:
    count, maximum = len(buckets_of(days, granularity)), QUERY_LIMITS["maxLimit"]
    if count > maximum:
        detail = (
            f" {quote_json(granularity.value)}: the {of} would have {count} rows, maximum is"
            f" {maximum}; use fewer days or a coarser granularity"
        )
        raise InvalidQuery(QueryErrorCode.INVALID_GRANULARITY, detail)


class _Scope(NamedTuple):
    """What the plans of all types share. `filters` are those of the request, by table."""

    website_id: WebsiteId
    cutoffs: Cutoffs
    filters: Mapping[str, tuple[PlannedCondition, ...]]
    range: DateRange
    compare: DateRange | None

    def narrow(self, plan: QueryPlan) -> QueryPlan:
        """Return the plan of a definition for this website, range and filters."""
        return replace(
            plan,
            website_id=self.website_id,
            cutoff_ms=self.cutoffs.of_table(plan.table),
            filters=(*plan.filters, *self.filters[plan.table.name]),
            range=self.range,
            compare=self.compare,
        )


def _plan_summary(
    types: Sequence[str], scope: _Scope, granularity: Granularity
) -> tuple[QueryPlan, ...]:
    """Return the plans of `summary`, of `timeseries`, or of both: then it has the totals."""
    if "timeseries" not in types:
        return tuple(map(scope.narrow, plans_of_type("summary"))) if "summary" in types else ()
    return tuple(
        replace(
            scope.narrow(plan),
            granularity=granularity,
            fill=True,
            limit=QUERY_LIMITS["maxLimit"],
            totals="summary" in types,
        )
        for plan in plans_of_type("timeseries")
    )


def _plan_breakdowns(
    types: Sequence[str], scope: _Scope, limit: int
) -> Mapping[str, tuple[Breakdown, ...]]:
    by_table: defaultdict[str, list[Breakdown]] = defaultdict(list)
    for name in types:
        if STANDARD_TYPES[name].form is Form.GROUPS:
            (plan,) = plans_of_type(name)
            breakdown = Breakdown(name, replace(scope.narrow(plan), limit=limit), plan.filters)
            by_table[plan.table.name].append(breakdown)
    return {table: tuple(breakdowns) for table, breakdowns in by_table.items()}


def _plan_online(scope: _Scope, now_ms: int) -> QueryPlan:
    (plan,) = plans_of_type("online")
    time = find_column(plan.table, plan.table.time_column)
    recent = (
        PlannedFilter(time, Operator.GT, (now_ms - ONLINE_MS,)),
        PlannedFilter(time, Operator.LTE, (now_ms,)),
    )
    narrowed = scope.narrow(plan)
    return replace(narrowed, filters=(*recent, *narrowed.filters))
