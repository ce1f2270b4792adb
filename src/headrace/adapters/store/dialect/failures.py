"""The one mapping from what chDB and ClickHouse servers fail with to the errors of the ports."""

from collections.abc import Generator
from contextlib import contextmanager

from headrace.adapters.store.dialect.errors import REJECTED_CODES, ClickHouseError
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import Logger
from headrace.ports.store import BatchRejected, SelectFailed


@contextmanager
def raising_store_unavailable(what: str = "") -> Generator[None]:
    """Raise `StoreUnavailable` where a statement of our own, or the store's disk, fails.

    Whatever the code, the statement is right, so the cause can go away. `what` begins the message:
    what cannot be done now.
    """
    try:
        yield
    except ClickHouseError as failure:
        raise StoreUnavailable(f"{what}: {failure}" if what else str(failure)) from failure
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreUnavailable(f"{what}: {reason}" if what else reason) from error


def insert_error(failure: ClickHouseError) -> BatchRejected | StoreUnavailable:
    """Return the error of a failed insert: does it blame the rows, or may it succeed later?"""
    if failure.code in REJECTED_CODES:
        return BatchRejected(failure.message)  # for the quarantine
    return StoreUnavailable(str(failure))


def refused_select(failure: ClickHouseError, sql: str, log: Logger) -> SelectFailed:
    """Return the error of a select whose SQL is wrong, and log what an operator reports."""
    log.error("select_refused", code=failure.code, name=failure.name, sql=sql)
    return SelectFailed(str(failure))
