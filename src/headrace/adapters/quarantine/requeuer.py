"""Requeues quarantined entries: appends them to a log of their own, from which they are loaded."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.files import (
    remove_durably,
    sync_directory,
    write_atomically,
)
from headrace.adapters.data_dir.paths import RETRY_LOG
from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.loaded_marker import read_loaded_offset
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_format import HEADER_SIZE
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.base.clock import Clock
from headrace.base.errors import (
    DurabilityUnknown,
    LogUnavailable,
    OperatorError,
    RejectedField,
    system_reason,
)
from headrace.base.metrics import Metrics
from headrace.formats.audited_changes import retry_change
from headrace.ports.audit import RecordChanges
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry, StoredEntry

_PENDING_FILE = "retry.begun"


class _PendingEntry(Struct, frozen=True):
    """The entry whose record is being appended, and the end of the log before the append."""

    id: str
    end: LogOffset


class QuarantineRequeuer:
    """Reads and requeues entries; blocking. Works with and without a running service.

    An entry is requeued exactly once: before its record is appended, its id and the log's end are
    recorded durably. After a crash or a failure, the log shows by its end whether the record was
    appended, and then the entry's file is removed. The lock of the log excludes a second requeuer.
    """

    def __init__(
        self,
        path: Path,
        *,
        log_root: Path,
        to_log_record: Callable[[QuarantineEntry], bytes],
        record_changes: RecordChanges,
        clock: Clock,
    ) -> None:
        self._path = path
        self._log_root = log_root
        self._convert_entry = to_log_record
        self._record_changes = record_changes
        self._clock = clock
        self._files = FileQuarantine(path)

    def entries(self) -> list[StoredEntry]:
        """Return all entries, sorted by log and offset. Raises `OperatorError` if damaged."""
        return [self._files.read(entry_id) for entry_id in self._files.ids()]

    def entry(self, entry_id: str) -> StoredEntry:
        """Return one entry. Raises `OperatorError` when it does not exist or is damaged."""
        return self._files.read(entry_id)

    def readable_entries(self) -> list[StoredEntry]:
        """Return the entries that can be decoded; see `RetryableQuarantine`."""
        return self._files.decodable_entries()

    def find(self, entry_id: str) -> StoredEntry | None:
        """Return one entry, or None; see `RetryableQuarantine`."""
        return self._files.find(entry_id)

    def requeue(self, ids: Sequence[str] | None = None, *, by: str) -> list[str]:
        """Requeue the entries with these ids, or all entries, for somebody; return their ids.

        Each is durable in the log before its file is removed. The audit log has their lines before
        the first append. Raises `OperatorError`: before the
        first append where one of them cannot be requeued, later when the log fails; the files of
        the entries that were requeued until then are removed.
        """
        if not self._files.ids():
            return [self._files.read(entry_id).id for entry_id in ids or ()]
        return asyncio.run(self._append_to_log(ids, by))

    async def _append_to_log(self, ids: Sequence[str] | None, by: str) -> list[str]:
        log = SegmentLog.open(self._log_root, RETRY_LOG, metrics=Metrics(), clock=self._clock)
        log_directory = LogDirectory(self._log_root / RETRY_LOG, file_ops=FileOps())
        try:
            self._finish_pending(log_directory.durable_offset())
            wanted = self._files.ids() if ids is None else list(dict.fromkeys(ids))
            entries = [self._files.read(entry_id) for entry_id in wanted]
            records = [self._to_log_record(entry) for entry in entries]
            if entries:
                self._record_changes(by, [retry_change(entry) for entry in entries])
            for entry_id, record in zip(wanted, records, strict=True):
                self._begin(_PendingEntry(entry_id, log_directory.durable_offset()))
                await log.append(record)
                self._files.remove(entry_id)
            self._end()
        except (OSError, LogUnavailable, DurabilityUnknown) as error:
            raise OperatorError(f"cannot requeue all entries: {system_reason(error)}") from error
        finally:
            log_directory.close()
            await log.close()
        return wanted

    def _to_log_record(self, stored: StoredEntry) -> bytes:
        try:
            record = self._convert_entry(stored.entry)
        except ValueError as error:
            raise RejectedField("item", f"cannot requeue {stored.id}: {error}") from error
        if not self._is_batch_committed(stored):
            raise OperatorError(f"the batch of {stored.id} is still being stored; try again later")
        return record

    def _is_batch_committed(self, stored: StoredEntry) -> bool:
        """Return whether the entry's batch is committed; until then it may be quarantined again.

        A log whose newest segment is an earlier one has new files: segment numbers only grow.
        """
        log, position = self._log_root / stored.entry.log, stored.entry.position
        loaded = read_loaded_offset(log)
        if not log.exists() or (loaded is not None and position < loaded):
            return True
        return 0 < _newest_segment(log) < position.segment

    def _begin(self, pending: _PendingEntry) -> None:
        write_atomically(self._path / _PENDING_FILE, msgspec.json.encode(pending))

    def _finish_pending(self, end: LogOffset) -> None:
        """Remove the entry that a requeuer appended before it crashed."""
        path = self._path / _PENDING_FILE
        if path.exists():
            pending = msgspec.json.decode(path.read_bytes(), type=_PendingEntry)
            if _is_appended(pending, end):
                self._files.remove(pending.id)
            self._end()

    def _end(self) -> None:
        sync_directory(self._path)
        remove_durably(self._path, [self._path / _PENDING_FILE])


def _newest_segment(log: Path) -> int:
    """Return the highest number of a log's segments, 0 without one. Raises `OSError`."""
    directory = LogDirectory(log, file_ops=FileOps())
    try:
        return max(directory.sequences(), default=0)
    finally:
        directory.close()


def _is_appended(pending: _PendingEntry, end: LogOffset) -> bool:
    """Return whether a log that ends there has the record of the pending entry.

    An append that failed or was killed may leave a new segment without it.
    """
    if end.segment > pending.end.segment:
        return end.offset > HEADER_SIZE
    return end > pending.end
