"""A validated retention query: every name is resolved and every value has its column's type."""

from msgspec import Struct

from headrace.model.catalog import Column
from headrace.model.plan import DateRange, Granularity, PlannedCondition
from headrace.model.tenancy import WebsiteId


class RetentionPlan(Struct, frozen=True):
    """A valid retention query over the events of one website.

    First events are those within `range`. `read_range` also has the buckets after it in which
    anybody may return. Rows before `cutoff_ms` are expired. `current_bucket` is the last bucket
    that has begun.
    """

    website_id: WebsiteId
    first: tuple[PlannedCondition, ...]
    returning: tuple[PlannedCondition, ...]
    granularity: Granularity
    periods: int
    by: Column
    range: DateRange
    read_range: DateRange
    cutoff_ms: int | None
    current_bucket: int
