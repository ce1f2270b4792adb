"""The one mapping from what chDB and ClickHouse servers fail with to the errors of the ports."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from headrace.adapters.store.dialect.errors import REJECTED_CODES, ClickHouseError
from headrace.base.errors import StoreUnavailable, system_reason
from headrace.base.logs import Logger
from headrace.ports.store import BatchRejected, SelectFailed

_SERVER_AWAY: Final = "a server of the ClickHouse cluster does not respond"
_OPERATOR_SENTENCES: Final[Mapping[int, str]] = {
    209: _SERVER_AWAY,  # SOCKET_TIMEOUT
    210: _SERVER_AWAY,  # NETWORK_ERROR
    279: _SERVER_AWAY,  # ALL_CONNECTION_TRIES_FAILED
}
"""What an operator has to know of failures of another server than the one that was asked."""


@contextmanager
def raising_store_unavailable(what: str = "") -> Generator[None]:
    """Raise `StoreUnavailable` where a statement of our own, or the store's disk, fails.

    Whatever the code, the statement is right, so the cause can go away. `what` begins the message:
    what cannot be done now.
    """
    try:
        yield
    except ClickHouseError as failure:
        reason = _describe(failure)
        raise StoreUnavailable(f"{what}: {reason}" if what else reason) from failure
    except OSError as error:
        reason = system_reason(error)
        raise StoreUnavailable(f"{what}: {reason}" if what else reason) from error


def _describe(failure: ClickHouseError) -> str:
    if failure.code in _OPERATOR_SENTENCES:
        return f"{_OPERATOR_SENTENCES[failure.code]} ({failure.name})"
    return str(failure)


def insert_error(failure: ClickHouseError) -> BatchRejected | StoreUnavailable:
    """Return the error of a failed insert: does it blame the rows, or may it succeed later?"""
    if failure.code in REJECTED_CODES:
        return BatchRejected(failure.message)  # for the quarantine
    return StoreUnavailable(str(failure))


def refused_select(failure: ClickHouseError, sql: str, log: Logger) -> SelectFailed:
    """Return the error of a select whose SQL is wrong, and log what an operator reports."""
    log.error("select_refused", code=failure.code, name=failure.name, sql=sql)
    return SelectFailed(str(failure))
