"""A validated query: every name is resolved and every value has its column's type."""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from msgspec import Struct

from headrace.model.catalog import QUERY_LIMITS, Aggregate, Column, Operator, Table
from headrace.model.tenancy import WebsiteId


class Granularity(Enum):
    """The size of a time bucket."""

    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


class Direction(Enum):
    """The sort direction of one key."""

    ASC = "asc"
    DESC = "desc"


FilterScalar = str | int | float | bool


class PlannedFilter(Struct, frozen=True):
    """One condition. Values have the column's type; datetimes are epoch milliseconds.

    Scalar operators have one value, `in` and `not_in` one or more, `is_set` and `is_not_set` none.
    """

    column: Column
    operator: Operator
    values: tuple[FilterScalar, ...]


class Conjunction(Enum):
    """How the items of a group are joined."""

    OR = "or"
    AND = "and"


class PlannedGroup(Struct, frozen=True):
    """A group of conditions; it has at least one item."""

    conjunction: Conjunction
    items: tuple["PlannedFilter | PlannedGroup", ...]


PlannedCondition = PlannedFilter | PlannedGroup


def single_filters(conditions: Iterable[PlannedCondition]) -> Iterator[PlannedFilter]:
    """Return the filters of conditions, those within groups included, in order."""
    for condition in conditions:
        if isinstance(condition, PlannedGroup):
            yield from single_filters(condition.items)
        else:
            yield condition


class PlannedSelect(Struct, frozen=True):
    """One output column over the rows that match its own filters. `column` is None for `*`."""

    column: Column | None
    aggregate: Aggregate
    alias: str
    filters: tuple[PlannedCondition, ...] = ()


class PlannedOrder(Struct, frozen=True):
    """One sort key, by output name."""

    output_name: str
    direction: Direction


class PlannedHaving(Struct, frozen=True):
    """One condition for the rows of a result; `index` is that of a select."""

    index: int
    operator: Operator
    value: float


class DateRange(Struct, frozen=True):
    """Whole days of a timezone, both ends included.

    `first_day` and `last_day` count from 1970-01-01. `offsets` are the zone's offsets from UTC
    within the range, oldest first, as pairs (from epoch second, offset in seconds). Stores convert
    timestamps to local time with these alone, so that they agree with Python whatever version of
    the timezone database they have.
    """

    first_day: int
    last_day: int
    start_ms: int
    end_ms: int
    offsets: tuple[tuple[int, int], ...]
    timezone: str


class QueryPlan(Struct, frozen=True):
    """A valid query for one website. Rows before `cutoff_ms` are expired; None is without one.

    With `compare` each row also has the values of that range. With `totals` the result also has
    the selects over all rows that match the filters. With `top` it has the rows of so many groups,
    the first ones of the range as a whole; with `others` also one for all others in each bucket.
    """

    website_id: WebsiteId
    table: Table
    selects: tuple[PlannedSelect, ...]
    filters: tuple[PlannedCondition, ...]
    group_by: tuple[Column, ...]
    range: DateRange
    granularity: Granularity | None
    order_by: tuple[PlannedOrder, ...]
    limit: int
    offset: int
    fill: bool
    having: tuple[PlannedHaving, ...] = ()
    compare: DateRange | None = None
    totals: bool = False
    top: int | None = None
    others: bool = False
    cutoff_ms: int | None = None

    @property
    def has_groups(self) -> bool:
        """Whether the result has a row for each group or bucket; without them it has one row."""
        return bool(self.group_by) or self.granularity is not None

    @property
    def ranges(self) -> tuple[DateRange, ...]:
        """The range, and the one that it is compared with if there is one."""
        return (self.range,) if self.compare is None else (self.range, self.compare)


class OutputKind(Enum):
    """How a value from the store is converted to a value of the result."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATETIME = "datetime"  # epoch milliseconds in the store
    JSON = "json"  # JSON text in the store
    HOUR = "hour"  # hours since 1970 on the wall clock of the query's timezone
    DAY = "day"  # days since 1970 there
    WEEK = "week"  # weeks there, from Monday, 29 December 1969
    MONTH = "month"  # months there since the year 0: 12 * year + month
    NUMBERS = "numbers"  # an array of them, with null for the missing ones


class Output(Struct, frozen=True):
    """One column of the result."""

    name: str
    kind: OutputKind


class CompiledQuery(Struct, frozen=True):
    """SQL with bound parameters, and the names and kinds of its columns.

    The text depends on the plan's shape alone; every value of the caller is in `parameters`.
    `website_id` is the website whose rows it reads, or "" where that is unknown. A result of more
    than `max_rows` is an error.
    """

    sql: str
    parameters: dict[str, Any]
    outputs: tuple[Output, ...]
    website_id: str = ""
    max_rows: int = QUERY_LIMITS["maxLimit"] + 1
