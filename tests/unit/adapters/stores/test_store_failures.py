"""What a failed statement, or a failing disk of the store, is to the callers of the ports."""

import errno
import os

import pytest
import structlog
from structlog.testing import capture_logs

from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.failures import (
    insert_error,
    raising_store_unavailable,
    refused_select,
)
from headrace.base.errors import StoreUnavailable
from headrace.ports.store import BatchRejected, SelectFailed

DISK_FULL = ClickHouseError(243, "NOT_ENOUGH_SPACE", "Cannot reserve 1.00 MiB")
INVALID_ROW = ClickHouseError(53, "TYPE_MISMATCH", "Type mismatch in column time")


@pytest.mark.parametrize(
    ("what", "failure", "message"),
    [
        ("", DISK_FULL, "ClickHouse rejected a statement: NOT_ENOUGH_SPACE (243)"),
        (
            "cannot reopen events",
            INVALID_ROW,
            "cannot reopen events: ClickHouse rejected a statement: TYPE_MISMATCH (53)",
        ),
        (
            "cannot read the store",
            OSError(errno.EIO, os.strerror(errno.EIO), "/data/store"),
            "cannot read the store: input/output error",
        ),
        ("", TimeoutError("no answer"), "no answer"),
    ],
)
def test_failure_of_a_statement_or_the_disk_is_an_unavailable_store(
    what: str, failure: Exception, message: str
) -> None:
    with pytest.raises(StoreUnavailable) as raised, raising_store_unavailable(what):
        raise failure
    assert str(raised.value) == message
    assert raised.value.__cause__ is failure


@pytest.mark.parametrize("error", [BatchRejected("a row"), KeyError("a fault of ours")])
def test_other_errors_pass_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, raising_store_unavailable("cannot read"):
        raise error
    assert raised.value is error


def test_insert_that_blames_its_rows_is_rejected_and_any_other_is_tried_again() -> None:
    rejected, unavailable = insert_error(INVALID_ROW), insert_error(DISK_FULL)
    assert (type(rejected), str(rejected)) == (BatchRejected, INVALID_ROW.message)
    assert (type(unavailable), str(unavailable)) == (StoreUnavailable, str(DISK_FULL))


def test_refused_select_is_logged_with_its_statement_and_without_the_values_of_a_caller() -> None:
    with capture_logs() as lines:
        error = refused_select(INVALID_ROW, "SELECT 1", structlog.get_logger())
    assert (type(error), str(error)) == (SelectFailed, str(INVALID_ROW))
    assert lines == [
        {
            "event": "select_refused",
            "log_level": "error",
            "code": 53,
            "name": "TYPE_MISMATCH",
            "sql": "SELECT 1",
        }
    ]
