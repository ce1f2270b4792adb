"""A checked query: what is meant by a request once every name and value was found valid."""

from enum import Enum
from typing import Any

from msgspec import Struct

from headrace.model.catalog import Aggregate, Column, Operator, Table
from headrace.model.tenancy import WebsiteId


class Granularity(Enum):
    """The size of a bucket of time."""

    HOURLY = "hourly"
    DAILY = "daily"


class Direction(Enum):
    """The direction of one key of an order."""

    ASC = "asc"
    DESC = "desc"


FilterScalar = str | int | float | bool


class PlannedSelect(Struct, frozen=True):
    """One output. `column` is None for `*`."""

    column: Column | None
    aggregate: Aggregate
    alias: str


class PlannedFilter(Struct, frozen=True):
    """One condition with values of the column's type; datetimes are epoch milliseconds.

    One value for scalar operators, one or more for `in` and `not_in`.
    """

    column: Column
    operator: Operator
    values: tuple[FilterScalar, ...]


class PlannedOrder(Struct, frozen=True):
    """One key of the order, by output name."""

    output_name: str
    direction: Direction


class DateRange(Struct, frozen=True):
    """Whole days of a timezone, both ends included.

    `first_day` and `last_day` count from 1970-01-01. `offsets` are the zone's offsets from UTC
    within the range, oldest first, as pairs (from epoch second, offset in seconds): what a moment
    is called in the zone is worked out from these alone, so that every store agrees with Python.
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
    """How a value of the store becomes a value of the answer."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATETIME = "datetime"  # epoch milliseconds in the store
    JSON = "json"  # JSON text in the store
    HOUR = "hour"  # hours since 1970 on the wall of the query's timezone
    DAY = "day"  # days since 1970 there


class Output(Struct, frozen=True):
    """One key of every row of the answer."""

    name: str
    kind: OutputKind


class CompiledQuery(Struct, frozen=True):
    """SQL with bound parameters, and what its columns are called and mean.

    The text depends on the plan's shape alone; every value of the caller is in `parameters`.
    `website_id` is the one whose rows it reads, "" where that is not known.
    """

    sql: str
    parameters: dict[str, Any]
    outputs: tuple[Output, ...]
    website_id: str = ""
