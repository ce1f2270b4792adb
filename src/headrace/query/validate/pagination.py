"""Check the outputs of a query: their names, buckets, order and page."""

from collections.abc import Iterable, Sequence

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import DATE_OUTPUT_NAME, QUERY_LIMITS, Table
from headrace.model.plan import DateRange, Direction, Granularity, PlannedOrder
from headrace.query.validate.day_range import buckets_of
from headrace.query.validate.lengths import parse_whole_number
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json
from headrace.query.validate.synonyms import DIRECTION_SYNONYMS, GRANULARITY_SYNONYMS


def check_output_names(names: Iterable[str], *, has_granularity: bool) -> tuple[str, ...]:
    """Return all output names. Raises `InvalidQuery` (`Duplicate output name`) for equal ones."""
    known: list[str] = []
    for name in (*names, DATE_OUTPUT_NAME) if has_granularity else names:
        if name in known:
            raise InvalidQuery(QueryErrorCode.DUPLICATE_OUTPUT_NAME, f" {quote_json(name)}")
        known.append(name)
    return tuple(known)


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
        hint = did_you_mean_one_of(value, sizes, GRANULARITY_SYNONYMS)
        raise InvalidQuery(QueryErrorCode.INVALID_GRANULARITY, f" {quote_json(value)}{hint}")
    if not table.supports_granularity:
        detail = f": not available for table {quote_json(table.name)}"
        raise InvalidQuery(QueryErrorCode.INVALID_GRANULARITY, detail)
    return Granularity(value)


def check_limit(value: object) -> int:
    """Return the maximum number of rows of the result; a limit over `maxLimit` is reduced to it."""
    if value is None:
        return QUERY_LIMITS["defaultLimit"]
    limit = parse_whole_number(value)
    if limit is None or limit < 1:
        raise InvalidQuery(QueryErrorCode.INVALID_LIMIT, ": must be a whole number from 1")
    return min(limit, QUERY_LIMITS["maxLimit"])


def check_offset(value: object) -> int:
    """Return the number of rows to skip."""
    if value is None:
        return 0
    offset, maximum = parse_whole_number(value), QUERY_LIMITS["maxOffset"]
    if offset is None or not 0 <= offset <= maximum:
        detail = f": must be a whole number from 0 to {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_OFFSET, detail)
    return offset


def check_order(keys: Sequence[wire.OrderBy], names: Sequence[str]) -> tuple[PlannedOrder, ...]:
    """Return the keys of the order; each names an output."""
    maximum = QUERY_LIMITS["maxOrderBy"]
    if len(keys) > maximum:
        detail = f": {len(keys)} keys given, maximum is {maximum}"
        raise InvalidQuery(QueryErrorCode.INVALID_ORDER_BY, detail)
    return tuple(
        _check_order_key(key, f"orderBy[{index}]", names) for index, key in enumerate(keys)
    )


def check_fill(
    value: object,
    granularity: Granularity | None,
    days: DateRange,
    *,
    has_groups: bool,
    has_having: bool,
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
    if has_having:  # a bucket that was taken out would come back as 0
        raise InvalidQuery(QueryErrorCode.INVALID_FILL, ": not possible together with having")
    if not has_groups:
        check_filled_rows(len(buckets_of(days, granularity)))
    return True


def check_top(value: object, *, has_groups: bool, has_granularity: bool) -> int | None:
    """Return how many groups the result has; None for all. Raises `InvalidQuery`: `Invalid top`."""
    if value is None:
        return None
    top, maximum = parse_whole_number(value), QUERY_LIMITS["maxTop"]
    if top is None or not 1 <= top <= maximum:
        raise _invalid_top(f": must be a whole number from 1 to {maximum}")
    if not has_groups or not has_granularity:
        raise _invalid_top(": requires groupBy and a granularity")
    return top


def check_others(value: object, top: int | None) -> bool:
    """Return whether the result has others. Raises `InvalidQuery`: `Invalid top`."""
    if value is None or value is False:
        return False
    if value is not True:
        raise _invalid_top(": others must be true or false")
    if top is None:
        raise _invalid_top(": others requires top")
    return True


def _invalid_top(detail: str) -> InvalidQuery:
    return InvalidQuery(QueryErrorCode.INVALID_TOP, detail)


def check_totals(value: object) -> bool:
    """Return whether the result has totals. Raises `InvalidQuery`: `Invalid totals`."""
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidQuery(QueryErrorCode.INVALID_TOTALS, ": must be true or false")
    return value


def check_compared_fill(
    compared: DateRange, granularity: Granularity | None, *, has_groups: bool
) -> None:
    """Raise `InvalidQuery` (`Invalid fill`) if the filled compared range has too many rows.

    Without groups their number is known here, as that of the result is in `check_fill`.
    """
    if granularity is not None and not has_groups:
        check_filled_rows(len(buckets_of(compared, granularity)), of="compared range")


def check_filled_rows(count: int, *, of: str = "result") -> None:
    """Raise `InvalidQuery` (`Invalid fill`) if a filled result has too many rows.

    `of` says what is filled: the result, or the range that it is compared with.
    """
    maximum = QUERY_LIMITS["maxLimit"]
    if count > maximum:
        raise InvalidQuery(
            QueryErrorCode.INVALID_FILL,
            f": the {of} would have {count} rows, maximum is {maximum};"
            " use fewer days, fewer groups or a coarser granularity",
        )


def _check_order_key(key: wire.OrderBy, path: str, names: Sequence[str]) -> PlannedOrder:
    if key.field not in names:
        detail = f" {quote_json(key.field)}"
        reason = f": no output has this name{did_you_mean_one_of(key.field, names)}"
        raise InvalidQuery(QueryErrorCode.INVALID_ORDER_BY, detail, reason, path)
    directions = [direction.value for direction in Direction]
    sent = Direction.ASC.value if key.direction is None else key.direction
    if sent not in directions:
        hint = did_you_mean_one_of(sent, directions, DIRECTION_SYNONYMS)
        reason = f": direction {quote_json(sent)}{hint}"
        raise InvalidQuery(QueryErrorCode.INVALID_ORDER_BY, "", reason, path)
    return PlannedOrder(key.field, Direction(sent))
