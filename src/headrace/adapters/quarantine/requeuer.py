"""Puts what was set aside back on its way to the store, through a log of its own."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.files import sync_directory, write_atomically
from headrace.adapters.data_dir.paths import RETRY_LOG
from headrace.adapters.event_log.segment_directory import FileOps, LogDirectory, read_loaded_offset
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.base.clock import Clock
from headrace.base.errors import LogUnavailable, OperatorError
from headrace.base.telemetry import Metrics
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry, StoredEntry

_PENDING_FILE = "retry.begun"


class _PendingEntry(Struct, frozen=True):
    """The entry whose record is being appended, and where the log ended before."""

    id: str
    end: LogOffset


class QuarantineRequeuer:
    """Reads and retries; blocking. Works whether the service runs or not.

    An entry goes back exactly once: before its record is appended, its id and the log's end are
    noted durably. After a crash the log's end tells whether the append was done, and the entry's
    file is then removed. The lock of the log keeps two desks apart.
    """

    def __init__(
        self,
        path: Path,
        *,
        log_root: Path,
        to_log_record: Callable[[QuarantineEntry], bytes],
        clock: Clock,
    ) -> None:
        self._path = path
        self._log_root = log_root
        self._convert_entry = to_log_record
        self._clock = clock
        self._files = FileQuarantine(path)

    def entries(self) -> list[StoredEntry]:
        """Return all entries, by log and place. Raises `OperatorError` where one is no entry."""
        return [self._files.read(entry_id) for entry_id in self._files.ids()]

    def entry(self, entry_id: str) -> StoredEntry:
        """Return one entry. Raises `OperatorError` where there is none."""
        return self._files.read(entry_id)

    def requeue(self, ids: Sequence[str] | None = None) -> list[str]:
        """Put entries back, all of them without ids, and return their ids.

        Each is durable in the log before its file goes. Raises `OperatorError` before any is put
        back where one cannot be, or when the log fails; those that were put back are gone then.
        """
        if not self._files.ids():
            return [self._files.read(entry_id).id for entry_id in ids or ()]
        return asyncio.run(self._append_to_log(ids))

    async def _append_to_log(self, ids: Sequence[str] | None) -> list[str]:
        log = SegmentLog.open(self._log_root, RETRY_LOG, metrics=Metrics(), clock=self._clock)
        log_directory = LogDirectory(self._log_root / RETRY_LOG, file_ops=FileOps())
        try:
            self._finish_pending(log_directory.durable_offset())
            wanted = self._files.ids() if ids is None else list(dict.fromkeys(ids))
            records = [self._to_log_record(self._files.read(entry_id)) for entry_id in wanted]
            for entry_id, record in zip(wanted, records, strict=True):
                self._begin(_PendingEntry(entry_id, log_directory.durable_offset()))
                await log.append(record)
                self._files.remove(entry_id)
            self._end()
        except (OSError, LogUnavailable) as error:
            raise OperatorError(f"not everything could be put back: {error}") from error
        finally:
            log_directory.close()
            await log.close()
        return wanted

    def _to_log_record(self, stored: StoredEntry) -> bytes:
        try:
            record = self._convert_entry(stored.entry)
        except ValueError as error:
            raise OperatorError(f"{stored.id} cannot be put back: {error}") from error
        if not self._is_batch_committed(stored):
            raise OperatorError(f"the batch of {stored.id} is still being stored; try again later")
        return record

    def _is_batch_committed(self, stored: StoredEntry) -> bool:
        """Tell whether the loader is done with the batch; else it may set the entry aside again."""
        log = self._log_root / stored.entry.log
        loaded = read_loaded_offset(log)
        return not log.exists() or (loaded is not None and stored.entry.position < loaded)

    def _begin(self, pending: _PendingEntry) -> None:
        write_atomically(self._path / _PENDING_FILE, msgspec.json.encode(pending))

    def _finish_pending(self, end: LogOffset) -> None:
        """Remove the entry that a crashed retry had appended and not removed."""
        path = self._path / _PENDING_FILE
        if path.exists():
            pending = msgspec.json.decode(path.read_bytes(), type=_PendingEntry)
            if pending.end < end:
                self._files.remove(pending.id)
            self._end()

    def _end(self) -> None:
        sync_directory(self._path)
        (self._path / _PENDING_FILE).unlink(missing_ok=True)
        sync_directory(self._path)
