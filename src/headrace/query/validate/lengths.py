"""Check the number of items of a list, and whole numbers."""

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.catalog import QUERY_LIMITS


def check_length(count: int, limit: str, code: QueryErrorCode, *, path: str = "") -> None:
    """Raise `InvalidQuery` with this code if there are more items than a limit of the catalog.

    `path` is where they are, for a code that several lists of a body have.
    """
    maximum = QUERY_LIMITS[limit]
    if count > maximum:
        raise InvalidQuery(code, "", f": {count} given, maximum is {maximum}", path)


def parse_whole_number(value: object) -> int | None:
    """Return a whole number, `5.0` included; None for anything else, true and false included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == int(value) else None
