"""Puts what was set aside back on its way to the store, through a log of its own."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.files import sync_directory, write_whole
from headrace.adapters.event_log.segment_directory import Disk, LogDirectory, loaded_end
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.base.clock import Clock
from headrace.base.errors import LogUnavailable, OperatorError
from headrace.base.telemetry import Metrics
from headrace.ports.event_log import LogPosition
from headrace.ports.quarantine import Quarantined, SetAside

RETRY_LOG = "retry"
_BEGUN_NAME = "retry.begun"


class _Begun(Struct, frozen=True):
    """The entry whose record is being appended, and where the log ended before."""

    id: str
    end: LogPosition


class QuarantineDesk:
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
        restore_record: Callable[[Quarantined], bytes],
        clock: Clock,
    ) -> None:
        self._path = path
        self._log_root = log_root
        self._restore_record = restore_record
        self._clock = clock
        self._files = FileQuarantine(path)

    def entries(self) -> list[SetAside]:
        """Return all entries, by log and place. Raises `OperatorError` where one is no entry."""
        return [self._files.read(entry_id) for entry_id in self._files.ids()]

    def entry(self, entry_id: str) -> SetAside:
        """Return one entry. Raises `OperatorError` where there is none."""
        return self._files.read(entry_id)

    def retry(self, ids: Sequence[str] | None = None) -> list[str]:
        """Put entries back, all of them without ids, and return their ids.

        Each is durable in the log before its file goes. Raises `OperatorError` before any is put
        back where one cannot be, or when the log fails; those that were put back are gone then.
        """
        if not self._files.ids():
            return [self._files.read(entry_id).id for entry_id in ids or ()]
        return asyncio.run(self._retry_in_log(ids))

    async def _retry_in_log(self, ids: Sequence[str] | None) -> list[str]:
        log = SegmentLog.open(self._log_root, RETRY_LOG, metrics=Metrics(), clock=self._clock)
        ends = LogDirectory(self._log_root / RETRY_LOG, disk=Disk())
        try:
            self._finish_begun(ends.durable_end())
            wanted = self._files.ids() if ids is None else list(dict.fromkeys(ids))
            records = [self._record_of(self._files.read(entry_id)) for entry_id in wanted]
            for entry_id, record in zip(wanted, records, strict=True):
                self._begin(_Begun(entry_id, ends.durable_end()))
                await log.append(record)
                self._files.remove(entry_id)
            self._end()
        except (OSError, LogUnavailable) as error:
            raise OperatorError(f"not everything could be put back: {error}") from error
        finally:
            ends.close()
            await log.close()
        return wanted

    def _record_of(self, kept: SetAside) -> bytes:
        try:
            record = self._restore_record(kept.entry)
        except ValueError as error:
            raise OperatorError(f"{kept.id} cannot be put back: {error}") from error
        if not self._is_settled(kept):
            raise OperatorError(f"the batch of {kept.id} is still being stored; try again later")
        return record

    def _is_settled(self, kept: SetAside) -> bool:
        """Tell whether the loader is done with the batch; else it may set the entry aside again."""
        log = self._log_root / kept.entry.log
        loaded = loaded_end(log)
        return not log.exists() or (loaded is not None and kept.entry.position < loaded)

    def _begin(self, begun: _Begun) -> None:
        write_whole(self._path / _BEGUN_NAME, msgspec.json.encode(begun))

    def _finish_begun(self, end: LogPosition) -> None:
        """Remove the entry that a crashed retry had appended and not removed."""
        note = self._path / _BEGUN_NAME
        if note.exists():
            begun = msgspec.json.decode(note.read_bytes(), type=_Begun)
            if begun.end < end:
                self._files.remove(begun.id)
            self._end()

    def _end(self) -> None:
        sync_directory(self._path)
        (self._path / _BEGUN_NAME).unlink(missing_ok=True)
        sync_directory(self._path)
