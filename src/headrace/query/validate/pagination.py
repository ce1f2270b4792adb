"""Check the buckets, order and page of a query: granularity, orderBy, limit, offset, fill."""

from collections.abc import Iterator, Sequence

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import QUERY_LIMITS, Table
from headrace.model.plan import DateRange, Direction, Granularity, PlannedOrder
from headrace.query.validate.day_range import buckets_of
from headrace.query.validate.suggest import did_you_mean, did_you_mean_one_of, quote_json


class OutputNames:
    """The output names of a query, collected while it is checked."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def add(self, name: str) -> None:
        """Add a name. Raises `InvalidQuery` (`Duplicate output name`) for a second one."""
        if name in self._names:
            raise InvalidQuery(QueryErrorCode.DUPLICATE_OUTPUT_NAME, f" {quote_json(name)}")
        self._names.append(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)


def check_granularity(table: Table, value: object) -> Granularity | None:
    """Return the size of a bucket; None without buckets."""
    if value is None:
        return None
    sizes = [size.value for size in Granularity]
    if not isinstance(value, str):
        raise InvalidQuery(
            QueryErrorCode.INVALID_GRANULARITY, f": must be one of {', '.join(sizes)}"
        )
    if value not in sizes:
        hint = did_you_mean_one_of(value, sizes)
        raise InvalidQuery(QueryErrorCode.INVALID_GRANULARITY, f" {quote_json(value)}{hint}")
    if not table.supports_granularity:
        detail = f": not available for table {quote_json(table.name)}"
        raise InvalidQuery(QueryErrorCode.INVALID_GRANULARITY, detail)
    return Granularity(value)


def check_limit(value: object) -> int:
    """Return the maximum number of rows of the result; a limit over `maxLimit` is reduced to it."""
    if value is None:
        return QUERY_LIMITS["defaultLimit"]
    limit = _whole_number(value)
    if limit is None or limit < 1:
        raise InvalidQuery(QueryErrorCode.INVALID_LIMIT, ": must be a whole number from 1")
    return min(limit, QUERY_LIMITS["maxLimit"])


def check_offset(value: object) -> int:
    """Return the number of rows to skip."""
    if value is None:
        return 0
    offset, maximum = _whole_number(value), QUERY_LIMITS["maxOffset"]
    if offset is None or not 0 <= offset <= maximum:
        detail = f": must be a whole number from 0 to {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_OFFSET, detail)
    return offset


def check_order(keys: Sequence[wire.OrderBy], names: OutputNames) -> tuple[PlannedOrder, ...]:
    """Return the keys of the order; each names an output."""
    maximum = QUERY_LIMITS["maxOrderBy"]
    if len(keys) > maximum:
        detail = f": {len(keys)} keys given, maximum is {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_ORDER_BY, detail)
    return tuple(_check_order_key(key, names) for key in keys)


def check_fill(
    value: object, granularity: Granularity | None, days: DateRange, *, has_groups: bool
) -> bool:
    """Return whether to add empty buckets.

    Without groups the number of rows is known here, so too many of them are rejected here.
    """
    if value is None or value is False:
        return False
    if value is not True:
        raise InvalidQuery(QueryErrorCode.INVALID_FILL, ": must be true or false")
    if granularity is None:
        raise InvalidQuery(QueryErrorCode.INVALID_FILL, ": requires a granularity")
    if not has_groups:
        check_filled_rows(len(buckets_of(days, granularity)))
    return True


def check_filled_rows(count: int) -> None:
    """Raise `InvalidQuery` (`Invalid fill`) if the filled result has too many rows."""
    maximum = QUERY_LIMITS["maxLimit"]
    if count > maximum:
        raise InvalidQuery(
            QueryErrorCode.INVALID_FILL,
            f": the result would have {count} rows, maximum is {maximum};"
            " use fewer days, fewer groups or a coarser granularity",
        )


def _check_order_key(key: wire.OrderBy, names: OutputNames) -> PlannedOrder:
    if key.field not in names:
        detail = (
            f" {quote_json(key.field)}: no output has this name{did_you_mean(key.field, names)}"
        )
        raise InvalidQuery(QueryErrorCode.INVALID_ORDER_BY, detail)
    directions = [direction.value for direction in Direction]
    sent = Direction.ASC.value if key.direction is None else key.direction
    if sent not in directions:
        detail = f": direction {quote_json(sent)}{did_you_mean_one_of(sent, directions)}"
        raise InvalidQuery(QueryErrorCode.INVALID_ORDER_BY, detail)
    return PlannedOrder(key.field, Direction(sent))


def _whole_number(value: object) -> int | None:
    """Return a whole number, `5.0` included; None for anything else, true and false included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == int(value) else None
