"""The exception for each error of a ClickHouse server."""

import pytest

from headrace.adapters.store.clickhouse.connection import NO_RESPONSE, connection_error
from headrace.adapters.store.clickhouse.reader import select_error
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (159, QueryTimedOut),
        (241, QueryTooLarge),
        (202, StoreUnavailable),
        (279, StoreUnavailable),
        (369, StoreUnavailable),
        (473, StoreUnavailable),
        (745, StoreUnavailable),
        (62, type(None)),
        (NO_RESPONSE, type(None)),
    ],
)
def test_a_failed_select_is_translated_by_error_code(code: int, error: type[object]) -> None:
    assert type(select_error(ClickHouseError(code, "NAME", "words"))) is error


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("<urlopen error [Errno 111] Connection refused>", "CONNECTION_REFUSED"),
        ("Read timed out. (read timeout=10)", "NO_RESPONSE_IN_TIME"),
        ("Connection to h timed out. (connect timeout=3)", "TIMED_OUT"),
        ("[Errno -2] Name or service not known", "UNKNOWN_HOST"),
        ("certificate verify failed: self-signed certificate", "CERTIFICATE_REFUSED"),
        ("Remote end closed connection without response", "CONNECTION_CLOSED"),
        ("[Errno 104] Connection reset by peer", "CONNECTION_RESET"),
        ("something else", "NO_ANSWER"),
    ],
)
def test_the_log_states_why_no_server_responded(words: str, name: str) -> None:
    failure = connection_error(words)
    assert (failure.code, failure.name) == (NO_RESPONSE, name)
