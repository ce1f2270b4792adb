"""Erases again, in the target of a migration, what was erased after its rows were copied."""

from contextlib import ExitStack

from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.row_deletion import ChdbRowDeleter
from headrace.adapters.store.chdb.row_finder import ChdbRowFinder
from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.adapters.store.clickhouse.row_deletion import ClickHouseRowDeleter
from headrace.adapters.store.clickhouse.row_finder import ClickHouseRowFinder
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.erasure.reapplication import Reapplication
from headrace.ports.rows.deletion import RowDeleter
from headrace.ports.rows.erasure import RowFinder
from headrace.ports.store import CHDB_DIALECT, SERVER_DIALECT, Dialect


def erase_again(erasures: FileErasures, target: ChdbInstance | ClickHouseAddress) -> int:
    """Return the number of rows that were erased. Raises `OperatorError`."""
    with ExitStack() as stack:
        finder: RowFinder
        deleter: RowDeleter
        dialect: Dialect
        if isinstance(target, ChdbInstance):
            finder, deleter, dialect = ChdbRowFinder(target), ChdbRowDeleter(target), CHDB_DIALECT
        else:
            finder, deleter = ClickHouseRowFinder(target), ClickHouseRowDeleter(target)
            dialect = SERVER_DIALECT
        stack.callback(finder.close)
        stack.callback(deleter.close)
        try:
            return Reapplication(
                erasures, finder=finder, deleter=deleter, dialect=dialect, clock=SystemClock()
            ).run()
        except StoreUnavailable as error:
            raise OperatorError(f"cannot erase again in the target: {error}") from error
