"""The errors of chDB and ClickHouse servers, and what each means to the caller of a query."""

import re

from headrace.base.errors import (
    HeadraceError,
    QueryTimedOut,
    QueryTooLarge,
    StoreUnavailable,
)

_UNKNOWN_CODE = 0


_TIMED_OUT = frozenset({159, 160})  # TIMEOUT_EXCEEDED, TOO_SLOW


_TOO_LARGE = frozenset({158, 191, 241, 307, 396})  # too many rows or bytes, memory


_TRANSIENT = frozenset({_UNKNOWN_CODE, 394, 60})
"""QUERY_WAS_CANCELLED; UNKNOWN_TABLE, while the writer reopens it."""


_BROKEN_PART = frozenset(
    {
        32,  # ATTEMPT_TO_READ_AFTER_EOF
        33,  # CANNOT_READ_ALL_DATA: truncated
        39,  # TOO_LARGE_SIZE_COMPRESSED
        40,  # CHECKSUM_DOESNT_MATCH
        74,  # CANNOT_READ_FROM_FILE_DESCRIPTOR
        76,  # CANNOT_OPEN_FILE
        107,  # FILE_DOESNT_EXIST
        226,  # NO_FILE_IN_DATA_PART
        228,  # BAD_SIZE_OF_FILE_IN_DATA_PART
        246,  # CORRUPTED_DATA
        271,  # CANNOT_DECOMPRESS
        432,  # UNKNOWN_CODEC
    }
)
"""Codes of a select that met a damaged part."""


_CODE = re.compile(r"Code: (\d+)\. .*\(([A-Z_0-9]+)\)", re.DOTALL)


_SERVER_MEMORY_EXCEEDED = "(total) memory limit exceeded"


_MISSING_GRANT = re.compile(r"necessary to have the grant (.+?)\. \(")


class ClickHouseError(Exception):
    """chDB or a server rejected a statement, with this code and the code's name.

    `message` is ClickHouse's own. It may contain values of a caller, so it is not logged.
    """

    def __init__(self, code: int, name: str, message: str = "") -> None:
        missing_grant = _MISSING_GRANT.search(message)
        self.grant = f": missing grant {missing_grant[1]}" if missing_grant else ""
        super().__init__(f"ClickHouse rejected a statement: {name} ({code}){self.grant}")
        self.code = code
        self.name = name
        self.message = message


class BrokenPart(StoreUnavailable):
    """A select met a part that cannot be read; reopening the tables may repair it."""


def parse_error(message: str) -> ClickHouseError:
    """Parse chDB's message; one without a code, or about the server's memory, gets the code 0."""
    found = _CODE.search(message)
    if found is None or _SERVER_MEMORY_EXCEEDED in message:
        return ClickHouseError(_UNKNOWN_CODE, "NO_MEMORY" if found else "UNKNOWN")
    return ClickHouseError(int(found[1]), found[2], message[found.start() :])


def query_error(failure: ClickHouseError) -> HeadraceError | None:
    """Return the caller's error for a failed select; None where the SQL itself is wrong."""
    if failure.code in _TIMED_OUT:
        return QueryTimedOut("Query timed out")
    if failure.code in _TOO_LARGE:
        return QueryTooLarge("Query too large")
    if failure.code in _BROKEN_PART:
        return BrokenPart(f"cannot read a part of the store: {failure.name}")
    if failure.code in _TRANSIENT:
        return StoreUnavailable(f"the query was cancelled: {failure.name}")
    return None


REJECTED_CODES = frozenset(
    {
        6,  # CANNOT_PARSE_TEXT
        8,  # THERE_IS_NO_COLUMN, in the stream
        27,  # CANNOT_PARSE_INPUT_ASSERTION_FAILED
        32,  # ATTEMPT_TO_READ_AFTER_EOF
        33,  # CANNOT_READ_ALL_DATA
        41,  # CANNOT_PARSE_DATETIME
        50,  # UNKNOWN_TYPE
        53,  # TYPE_MISMATCH
        69,  # ARGUMENT_OUT_OF_BOUND
        70,  # CANNOT_CONVERT_TYPE
        72,  # CANNOT_PARSE_NUMBER
        117,  # INCORRECT_DATA
        131,  # TOO_LARGE_STRING_SIZE
        321,  # VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
        349,  # CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
    }
)
"""Codes that blame the rows. The causes of all others, such as a full disk, can go away."""
