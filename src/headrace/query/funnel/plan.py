"""A validated funnel: every name is resolved and every value has its column's type."""

from msgspec import Struct

from headrace.model.catalog import Column
from headrace.model.plan import DateRange, PlannedCondition
from headrace.model.tenancy import WebsiteId


class PlannedStep(Struct, frozen=True):
    """One step: the events that match all conditions. Its name is for the result alone."""

    name: str | None
    filters: tuple[PlannedCondition, ...]


class FunnelPlan(Struct, frozen=True):
    """A valid funnel over the events of one website.

    `by` is the column of the ids whose events are followed. With `group_by` there is a funnel for
    each value that this column has at a first step. Rows before `cutoff_ms` are expired.
    """

    website_id: WebsiteId
    steps: tuple[PlannedStep, ...]
    window_ms: int
    by: Column
    group_by: Column | None
    range: DateRange
    cutoff_ms: int | None
