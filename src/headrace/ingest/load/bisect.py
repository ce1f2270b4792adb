"""Inserts the rows of one batch into one table, and isolates those that the store rejects."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from headrace.base.logs import get_logger
from headrace.formats.arrow_batch import write_stream
from headrace.ingest.load.batch import Batch
from headrace.ingest.load.columns import TableMapping
from headrace.model.catalog import Table
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.ledger import Ledger, PartOutcome
from headrace.ports.store import BatchRejected, StoreWriter

_REJECTED_BEFORE = "The store rejected it; its message was lost when the process ended."


class RejectedRow(Struct, frozen=True):
    """A row that cannot be stored: its number in the batch, and the reason."""

    number: int
    reason: str


class BisectingInserter:
    """Inserts a batch as a whole or, where that is rejected, in halves down to the invalid rows.

    The outcome of a part is recorded in the ledger before the next step: another outcome in a
    retry after a crash could store rows twice. A batch that is stored as a whole needs no record.
    """

    def __init__(
        self, store: StoreWriter, ledger: Ledger, *, token: str, shards: int | None
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._token = token
        self._shards = shards
        self._recorded = ledger.parts()

    def store(self, mapping: TableMapping[Any], batch: Batch[Any]) -> list[RejectedRow]:
        """Store all rows but the rejected ones, which it returns. Raises `StoreUnavailable`."""
        size = len(batch.items)
        return list(self._insert_part(mapping, batch, 0, size)) if size else []

    def _insert_part(
        self, mapping: TableMapping[Any], batch: Batch[Any], first: int, last: int
    ) -> Iterator[RejectedRow]:
        token = part_token(self._token, mapping.table, first, last)
        recorded = self._recorded.get(token)
        if recorded is PartOutcome.STORED:
            return
        if recorded is PartOutcome.REJECTED:
            reason: str | None = _REJECTED_BEFORE
        else:
            reason = self._insert(mapping, batch.slice(first, last), token)
            if reason is not None or last - first < len(batch.items):
                outcome = PartOutcome.STORED if reason is None else PartOutcome.REJECTED
                self._ledger.record_part(token, outcome)
        if reason is None:
            return
        if last - first == 1:
            yield RejectedRow(first, reason)
            return
        middle = (first + last) // 2
        yield from self._insert_part(mapping, batch, first, middle)
        yield from self._insert_part(mapping, batch, middle, last)

    def _insert(self, mapping: TableMapping[Any], rows: Batch[Any], token: str) -> str | None:
        """Insert rows; return the reason for their rejection, or None."""
        try:
            arrow_stream = write_stream(STORAGE_TABLES[mapping.table.name], mapping.columns(rows))
        except MemoryError:
            raise  # no fault of a row: the load is repeated
        except Exception as error:  # noqa: BLE001 - no row may ever stop the loader
            return self._rejection_reason(mapping, rows, error)
        try:
            self._store.insert(mapping.table, arrow_stream, token=token, shards=self._shards)
        except BatchRejected as error:
            return self._rejection_reason(mapping, rows, error)
        return None

    def _rejection_reason(
        self, mapping: TableMapping[Any], rows: Batch[Any], error: Exception
    ) -> str:
        # The store's message may quote clients' data: it goes to the quarantine, not to the log.
        get_logger().warning("rows_refused", table=mapping.table.name, rows=len(rows.items))
        return f"{type(error).__name__}: {error}"


def part_token(token: str, table: Table, first: int, last: int) -> str:
    """Return the token of the rows of a batch from the first up to but not including the last."""
    return f"{token}-{table.name}-{first}-{last}"
