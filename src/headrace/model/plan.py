"""A validated query: every name is resolved and every value has its column's type."""

from enum import Enum
from typing import Any

from msgspec import Struct

from headrace.model.catalog import Aggregate, Column, Operator, Table
from headrace.model.tenancy import WebsiteId


class Granularity(Enum):
    """The size of a time bucket."""

    HOURLY = "hourly"
    DAILY = "daily"


class Direction(Enum):
    """The sort direction of one key."""

    ASC = "asc"
    DESC = "desc"


FilterScalar = str | int | float | bool


class PlannedSelect(Struct, frozen=True):
    """One output column. `column` is None for `*`."""

    column: Column | None
    aggregate: Aggregate
    alias: str


class PlannedFilter(Struct, frozen=True):
    """One condition. Values have the column's type; datetimes are epoch milliseconds.

    Scalar operators have one value, `in` and `not_in` one or more.
    """

    column: Column
    operator: Operator
    values: tuple[FilterScalar, ...]


class PlannedOrder(Struct, frozen=True):
    """One sort key, by output name."""

    output_name: str
    direction: Direction


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
    """A valid query for one website."""

    website_id: WebsiteId
    table: Table
    selects: tuple[PlannedSelect, ...]
    filters: tuple[PlannedFilter, ...]
    group_by: tuple[Column, ...]
    range: DateRange
    granularity: Granularity | None
    order_by: tuple[PlannedOrder, ...]
    limit: int
    offset: int
    fill: bool


class OutputKind(Enum):
    """How a value from the store is converted to a value of the result."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATETIME = "datetime"  # epoch milliseconds in the store
    JSON = "json"  # JSON text in the store
    HOUR = "hour"  # hours since 1970 on the wall clock of the query's timezone
    DAY = "day"  # days since 1970 there


class Output(Struct, frozen=True):
    """One column of the result."""

    name: str
    kind: OutputKind


class CompiledQuery(Struct, frozen=True):
    """SQL with bound parameters, and the names and kinds of its columns.

    The text depends on the plan's shape alone; every value of the caller is in `parameters`.
    `website_id` is the website whose rows it reads, or "" where that is unknown.
    """

    sql: str
    parameters: dict[str, Any]
    outputs: tuple[Output, ...]
    website_id: str = ""
