"""A validated standard query: the plans of its types, as of custom queries."""

from collections.abc import Mapping

from msgspec import Struct

from headrace.model.plan import DateRange, PlannedCondition, QueryPlan


class Breakdown(Struct, frozen=True):
    """The plan of a type with groups. `own_filters` are those that the type itself has."""

    type_name: str
    plan: QueryPlan
    own_filters: tuple[PlannedCondition, ...]


class StandardPlan(Struct, frozen=True):
    """A valid standard query.

    `summary` has the plans of `summary` and `timeseries`, one for each table: with buckets and
    totals where both are asked for. `breakdowns` has those of each table that may share a scan.
    """

    types: tuple[str, ...]
    limit: int
    compare: DateRange | None
    summary: tuple[QueryPlan, ...]
    breakdowns: Mapping[str, tuple[Breakdown, ...]]
    online: QueryPlan | None
