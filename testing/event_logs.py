"""Logs of events in tests: opened, appended to, and read to their durable end."""

import asyncio
import os
from contextlib import closing
from pathlib import Path

from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_log import SEGMENT_BYTES, SegmentLog
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.base.clock import FixedClock
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LOG_START, LoggedRecord, LogOffset, LogReader

WORKER = "worker-0"


class KilledWriter(FileOps):
    """Leaves its files as they are after SIGKILL: with what they have beyond their records."""

    def free_after(self, file: int, end: int) -> None:
        assert os.fstat(file).st_size >= end


class QuickDisk(FileOps):
    """Skips fsync: the page cache is enough where no machine loses its power."""

    def sync(self, file: int) -> None:
        os.fstat(file)

    def sync_directory(self, path: Path) -> None:
        assert path.is_dir()


def open_log(
    root: Path,
    name: str = WORKER,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    file_ops: FileOps | None = None,
) -> SegmentLog:
    """Open a log that no other process has; its clock stands still."""
    return SegmentLog.open(
        root,
        name,
        metrics=Metrics(),
        clock=FixedClock(0),
        segment_bytes=segment_bytes,
        lock_timeout_s=0,
        file_ops=file_ops,
    )


def append(
    root: Path,
    *payloads: bytes,
    name: str = WORKER,
    segment_bytes: int = SEGMENT_BYTES,
    file_ops: FileOps | None = None,
) -> None:
    """Open a log, append records one after the other, and close it."""

    async def append_and_close() -> None:
        log = open_log(root, name, segment_bytes=segment_bytes, file_ops=file_ops)
        for payload in payloads:
            await log.append(payload)
        await log.close()

    asyncio.run(append_and_close())


def segments_of(root: Path, name: str = WORKER) -> list[Path]:
    """Return the files of a log, oldest first."""
    return sorted((root / name).glob("*.segment"))


def reader_of(root: Path, *, file_ops: FileOps | None = None) -> SegmentReader:
    """Return a reader that keeps corrupt ranges beside the logs, in `damaged`."""
    return SegmentReader(root, damaged=root.with_name("damaged"), file_ops=file_ops)


def records_of(
    root: Path, name: str = WORKER, *, max_bytes: int = 4096, file_ops: FileOps | None = None
) -> list[LoggedRecord]:
    """Return all records up to the durable end; a log that was never opened has none."""
    with closing(reader_of(root, file_ops=file_ops)) as reader:
        return read_records(reader, name, max_bytes=max_bytes)


def payloads_of(root: Path, name: str = WORKER) -> list[bytes]:
    """Return the content of all records up to the durable end."""
    return [record.payload for record in records_of(root, name)]


def read_records(
    reader: LogReader, name: str = WORKER, *, after: LogOffset = LOG_START, max_bytes: int = 4096
) -> list[LoggedRecord]:
    """Read a log chunk by chunk; each has at most so many bytes, and at least one record."""
    records, until = list[LoggedRecord](), reader.durable_offsets().get(name, LOG_START)
    while after < until:
        chunk = reader.read(name, after=after, until=until, max_bytes=max_bytes)
        assert chunk.end > after
        records += chunk.records
        after = chunk.end
    return records


def read_payloads(
    reader: LogReader, name: str = WORKER, *, after: LogOffset = LOG_START, max_bytes: int = 4096
) -> list[bytes]:
    """Return the content of all records of `read_records`."""
    return [
        record.payload for record in read_records(reader, name, after=after, max_bytes=max_bytes)
    ]
