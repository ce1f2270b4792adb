"""Error messages of chDB 26.9, and the exceptions that they map to."""

import pytest

from headrace.adapters.store.dialect.errors import (
    BrokenPart,
    ClickHouseError,
    parse_error,
    query_error,
)
from headrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable

DEADLINE = (
    "Code: 159. DB::Exception: Timeout exceeded: elapsed 1000.031 ms, maximum: 1000.000 ms. "
    "(TIMEOUT_EXCEEDED)"
)
MEMORY_OF_THE_QUERY = (
    "Code: 241. DB::Exception: Code: 241. DB::Exception: Query memory limit exceeded: would use "
    "62.94 MiB (attempt to allocate chunk of 62.89 MiB), maximum: 47.68 MiB. "
    "(MEMORY_LIMIT_EXCEEDED) (version 26.9.2.1). (MEMORY_LIMIT_EXCEEDED)"
)
MEMORY_OF_ALL = (
    "Code: 241. DB::Exception: (total) memory limit exceeded: would use 381.88 MiB (attempt to "
    "allocate chunk of 5.00 MiB), current RSS: 68.88 MiB, maximum: 381.47 MiB: While executing "
    "AggregatingTransform. (MEMORY_LIMIT_EXCEEDED)"
)
ROWS = (
    "Code: 396. DB::Exception: Limit for result exceeded, max rows: 5.00 thousand, current rows: "
    "10.00 thousand. (TOO_MANY_ROWS_OR_BYTES)"
)
KILLED = "Code: 394. DB::Exception: Query was cancelled. (QUERY_WAS_CANCELLED)"
REOPENED = "Code: 60. DB::Exception: Table headrace.events does not exist. (UNKNOWN_TABLE)"
BROKEN = "Code: 246. DB::Exception: Bad size of marks file: 0, must be: 96. (CORRUPTED_DATA)"
TRUNCATED = "Code: 33. DB::Exception: Cannot read all data. Bytes read: 0. (CANNOT_READ_ALL_DATA)"
WRONG = (
    "Code: 47. DB::Exception: Unknown expression identifier `nope`. In scope SELECT nope: Note: "
    "the query does not have the FROM clause. Did you forget to add it?. (UNKNOWN_IDENTIFIER)"
)
INSERT = (
    "Streaming insert finish failed: Code: 6. DB::Exception: Cannot parse string 'Code: 1. (X)' as "
    "UInt64: While executing ArrowIPCBlockInputFormat. (CANNOT_PARSE_TEXT) (version 26.9.2.1)"
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (DEADLINE, QueryTimedOut),
        (MEMORY_OF_THE_QUERY, QueryTooLarge),
        (MEMORY_OF_ALL, StoreUnavailable),
        (ROWS, QueryTooLarge),
        (KILLED, StoreUnavailable),
        ("Connection is closed", StoreUnavailable),
        (REOPENED, StoreUnavailable),
        (BROKEN, BrokenPart),
        (TRUNCATED, BrokenPart),
        (WRONG, type(None)),
    ],
    ids=[
        "deadline",
        "memory",
        "memory of all",
        "rows",
        "killed",
        "no code",
        "reopened",
        "broken part",
        "truncated part",
        "wrong",
    ],
)
def test_a_failed_select_is_translated_by_its_message(words: str, expected: type[object]) -> None:
    assert type(query_error(parse_error(words))) is expected


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [(WRONG, 47, "UNKNOWN_IDENTIFIER"), (INSERT, 6, "CANNOT_PARSE_TEXT"), ("?", 0, "UNKNOWN")],
    ids=["select", "insert", "nothing"],
)
def test_a_failure_has_the_code_and_its_name(words: str, code: int, name: str) -> None:
    failure = parse_error(words)
    assert (failure.code, failure.name) == (code, name)


def test_a_failure_does_not_expose_the_engine_message() -> None:
    assert str(ClickHouseError(6, "CANNOT_PARSE_TEXT", INSERT)) == (
        "ClickHouse rejected a statement: CANNOT_PARSE_TEXT (6)"
    )
