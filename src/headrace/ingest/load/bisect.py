"""Stores the rows of one batch in one table, and finds those that the store refuses."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from headrace.base.telemetry import get_logger
from headrace.formats.arrow_batch import write_stream
from headrace.ingest.load.batch import Batch
from headrace.ingest.load.columns import Shape
from headrace.model.catalog import Table
from headrace.model.storage import STORED
from headrace.ports.ledger import Ledger, PartOutcome
from headrace.ports.store import RejectedBatch, StoreWriter

_REFUSED_BEFORE = "The store refused it; the words were lost when the process ended."


class RefusedRow(Struct, frozen=True):
    """A row that cannot be stored: its number in the batch, and why."""

    number: int
    reason: str


class PartStorer:
    """Stores a batch whole or, where that is refused, in halves down to the guilty rows.

    What became of a part is noted in the ledger before the next step, because another outcome at a
    second try, after a crash, could store rows twice. A batch that is taken whole needs no note.
    """

    def __init__(self, store: StoreWriter, ledger: Ledger, *, token: str) -> None:
        self._store = store
        self._ledger = ledger
        self._token = token
        self._noted = ledger.parts()

    def store(self, shape: Shape[Any], batch: Batch[Any]) -> list[RefusedRow]:
        """Store all rows but those that are returned. Raises what the store raises for a while."""
        size = len(batch.items)
        return list(self._store_part(shape, batch, 0, size)) if size else []

    def _store_part(
        self, shape: Shape[Any], batch: Batch[Any], first: int, last: int
    ) -> Iterator[RefusedRow]:
        token = part_token(self._token, shape.table, first, last)
        noted = self._noted.get(token)
        if noted is PartOutcome.STORED:
            return
        if noted is PartOutcome.REFUSED:
            reason: str | None = _REFUSED_BEFORE
        else:
            reason = self._insert(shape, batch.part(first, last), token)
            if reason is not None or last - first < len(batch.items):
                outcome = PartOutcome.STORED if reason is None else PartOutcome.REFUSED
                self._ledger.note_part(token, outcome)
        if reason is None:
            return
        if last - first == 1:
            yield RefusedRow(first, reason)
            return
        middle = (first + last) // 2
        yield from self._store_part(shape, batch, first, middle)
        yield from self._store_part(shape, batch, middle, last)

    def _insert(self, shape: Shape[Any], part: Batch[Any], token: str) -> str | None:
        """Insert rows; return why they are refused, or None."""
        try:
            stream = write_stream(STORED[shape.table.name], shape.columns(part))
        except Exception as error:  # noqa: BLE001 - no row may ever stop the loader
            return self._refusal(shape, part, error)
        try:
            self._store.insert(shape.table, stream, token=token)
        except RejectedBatch as error:
            return self._refusal(shape, part, error)
        return None

    def _refusal(self, shape: Shape[Any], part: Batch[Any], error: Exception) -> str:
        # The store's words may quote what callers sent: they go to the quarantine, not to the log.
        get_logger().warning("rows_refused", table=shape.table.name, rows=len(part.items))
        return f"{type(error).__name__}: {error}"


def part_token(token: str, table: Table, first: int, last: int) -> str:
    """Return the token of the rows of a batch from the first up to but not including the last."""
    return f"{token}-{table.name}-{first}-{last}"
