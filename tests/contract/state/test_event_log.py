"""The contract of every event log, and its recovery after failures of disk and process."""

import asyncio
import shutil
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from structlog.testing import capture_logs

from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.memory.log import MemoryLog
from headrace.base.clock import FixedClock
from headrace.base.errors import DurabilityUnknown, HeadraceError, LogUnavailable, OperatorError
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LOG_START, EventLog, LogOffset
from testing.event_logs import payloads_of, read_payloads, reader_of
from testing.open_files import number_of_descriptors

pytestmark = pytest.mark.asyncio

OpenLog = Callable[..., SegmentLog]


class FailingDisk(FileOps):
    """A disk whose chosen calls fail until it is repaired, or block until they are released."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.full_beyond: int | None = None
        self._segments: set[int] = set()
        self.syncing = threading.Event()
        self.may_sync = threading.Event()
        self.may_sync.set()

    def create(self, path: Path) -> int:
        self._check("create")
        file = super().create(path)
        self._segments.add(file)
        return file

    def write(self, file: int, content: bytes, offset: int) -> None:
        if "write" in self.broken:  # a full disk writes only a part
            super().write(file, content[: len(content) // 2], offset)
        self._check("write")
        if self.full_beyond is not None and len(content) > self.full_beyond:
            raise OSError(28, "No space left on device")
        super().write(file, content, offset)

    def truncate(self, file: int, size: int) -> None:
        self._check("truncate")
        super().truncate(file, size)

    def sync(self, file: int) -> None:
        self.syncing.set()
        assert self.may_sync.wait(30)
        self._check("sync")
        if file in self._segments:
            self._check("sync of a segment")
        super().sync(file)

    def sync_directory(self, path: Path) -> None:
        self._check("sync_directory")
        super().sync_directory(path)

    def _check(self, call: str) -> None:
        if call in self.broken:
            raise OSError(28, "No space left on device")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def open_log(root: Path) -> OpenLog:
    def open_named(name: str = "worker-0", **options: object) -> SegmentLog:
        return SegmentLog.open(
            root,
            name,
            metrics=Metrics(),
            clock=FixedClock(0),
            lock_timeout_s=0,
            **options,  # type: ignore[arg-type]  # each test knows what it passes
        )

    return open_named


async def append_all(log: EventLog, *payloads: bytes) -> None:
    await asyncio.gather(*(log.append(payload) for payload in payloads))


@dataclass
class AnyLog:
    """A log of any kind, with a function that reads its records."""

    log: EventLog
    recorded: Callable[[], list[bytes]]


@pytest.fixture(params=["segments", "memory"])
def any_log(request: pytest.FixtureRequest, open_log: OpenLog, root: Path) -> AnyLog:
    if request.param == "segments":
        return AnyLog(open_log(), lambda: payloads_of(root))
    memory = MemoryLog()
    return AnyLog(memory, lambda: memory.records)


async def test_appended_records_are_kept_in_order_of_appending(any_log: AnyLog) -> None:
    await append_all(any_log.log, b"one", b"", b"two" * 5000)
    await any_log.log.append(b"three")
    assert any_log.recorded() == [b"one", b"", b"two" * 5000, b"three"]
    await any_log.log.close()


async def test_append_nowait_reports_after_records_are_durable(any_log: AnyLog) -> None:
    kept: list[list[bytes]] = []
    durable = asyncio.Event()

    def on_durable(failure: HeadraceError | None) -> None:
        assert failure is None
        kept.append(any_log.recorded())
        if len(kept) == 2:
            durable.set()

    any_log.log.append_nowait(b"one", on_durable)
    any_log.log.append_nowait(b"two", on_durable)
    assert kept == []
    await durable.wait()
    assert kept == [[b"one", b"two"]] * 2
    await any_log.log.close()
    with pytest.raises(LogUnavailable):
        any_log.log.append_nowait(b"too late", on_durable)
    assert any_log.recorded() == [b"one", b"two"]


async def test_all_that_was_appended_is_reported_when_the_log_is_closed(any_log: AnyLog) -> None:
    reported: list[HeadraceError | None] = []
    any_log.log.append_nowait(b"one", reported.append)
    any_log.log.append_nowait(b"two", reported.append)
    await any_log.log.close()
    assert reported == [None, None]
    assert any_log.recorded() == [b"one", b"two"]


async def test_log_is_ready_until_closed_and_then_rejects_appends(any_log: AnyLog) -> None:
    assert await any_log.log.is_ready()
    await any_log.log.close()
    await any_log.log.close()
    assert not await any_log.log.is_ready()
    with pytest.raises(LogUnavailable):
        await any_log.log.append(b"too late")
    assert any_log.recorded() == []


async def test_records_join_end_to_start(open_log: OpenLog, root: Path) -> None:
    log = open_log()
    await append_all(log, b"one", b"two")
    with closing(reader_of(root)) as reader:
        end = reader.durable_offsets()["worker-0"]
        first, second = reader.read("worker-0", after=LOG_START, until=end, max_bytes=9).records
        assert (first.end, second.end) == (second.start, end)
        again = reader.read("worker-0", after=first.end, until=end, max_bytes=9)
        assert again.records == [second]
    await log.close()


async def test_a_second_writer_of_a_log_gets_a_clear_error(open_log: OpenLog) -> None:
    log = open_log()
    with pytest.raises(OperatorError, match=r"^the log .*worker-0 is in use by another process$"):
        open_log()
    await log.close()
    await open_log().close()


async def test_logs_are_read_separately(open_log: OpenLog, root: Path) -> None:
    logs = [open_log(f"worker-{number}") for number in range(2)]
    for number, log in enumerate(logs):
        await log.append(b"of %d" % number)
    with closing(reader_of(root)) as reader:
        assert [read_payloads(reader, name) for name in reader.durable_offsets()] == [
            [b"of 0"],
            [b"of 1"],
        ]
    for log in logs:
        await log.close()


async def test_no_log_has_no_durable_offset(root: Path) -> None:
    with closing(reader_of(root)) as reader:
        assert reader.durable_offsets() == {}


async def test_folder_of_the_check_of_a_mounted_disk_is_no_log(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    (root / "lost+found").mkdir()
    with closing(reader_of(root)) as reader:
        assert reader.durable_offsets() == {"worker-0": LOG_START}
        assert reader.unreadable() == []
    await log.close()


async def test_opened_log_without_records_ends_at_the_start(open_log: OpenLog, root: Path) -> None:
    log = open_log()
    with closing(reader_of(root)) as reader:
        assert reader.durable_offsets() == {"worker-0": LOG_START}
    await log.close()


async def test_what_is_not_synced_yet_is_not_read(open_log: OpenLog, root: Path) -> None:
    file_ops = FailingDisk()
    log = open_log(file_ops=file_ops)
    await log.append(b"synced")
    file_ops.may_sync.clear()
    file_ops.syncing.clear()
    waiting = asyncio.create_task(log.append(b"being synced"))
    await asyncio.to_thread(file_ops.syncing.wait, 30)
    assert payloads_of(root) == [b"synced"]
    assert not waiting.done()
    file_ops.may_sync.set()
    await waiting
    assert payloads_of(root) == [b"synced", b"being synced"]
    await log.close()


async def test_cancelling_an_append_keeps_its_record(open_log: OpenLog, root: Path) -> None:
    file_ops = FailingDisk()
    log = open_log(file_ops=file_ops)
    file_ops.may_sync.clear()
    cancelled = asyncio.create_task(log.append(b"cancelled"))
    await asyncio.to_thread(file_ops.syncing.wait, 30)
    cancelled.cancel()
    later = asyncio.create_task(log.append(b"later"))
    await asyncio.sleep(0)
    file_ops.may_sync.set()
    await later
    assert cancelled.cancelled()
    assert payloads_of(root) == [b"cancelled", b"later"]
    await log.close()


async def test_close_flushes_appended_records_and_is_idempotent(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    waiting = asyncio.create_task(log.append(b"last"))
    await asyncio.sleep(0)
    await log.close()
    await log.close()
    assert waiting.done()
    assert payloads_of(root) == [b"last"]


async def test_full_segments_are_followed_by_new_ones(open_log: OpenLog, root: Path) -> None:
    log = open_log(segment_bytes=200)
    payloads = [bytes([number]) * 90 for number in range(7)]
    for payload in payloads:
        await log.append(payload)
    assert payloads_of(root) == payloads
    assert len(list((root / "worker-0").glob("*.segment"))) == 7
    await log.close()


async def test_record_longer_than_a_segment_is_not_split(open_log: OpenLog, root: Path) -> None:
    log = open_log(segment_bytes=200)
    await append_all(log, b"a" * 150, b"b" * 100_000, b"c")
    assert payloads_of(root) == [b"a" * 150, b"b" * 100_000, b"c"]
    await log.close()


async def test_reopened_log_continues_in_a_new_segment(open_log: OpenLog, root: Path) -> None:
    for payload in (b"one", b"two", b"three"):
        log = open_log()
        await log.append(payload)
        await log.close()
    assert payloads_of(root) == [b"one", b"two", b"three"]
    with closing(reader_of(root)) as reader:
        assert reader.durable_offsets()["worker-0"].segment == 3


async def test_truncated_segments_are_deleted_and_the_rest_is_read(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log(segment_bytes=200)
    for number in range(4):
        await log.append(bytes([number]) * 150)
    with closing(reader_of(root)) as reader:
        reader.truncate_before("worker-0", LogOffset(3, 50))
        reader.truncate_before("worker-0", LogOffset(3, 50))
        assert read_payloads(reader) == [b"\x02" * 150, b"\x03" * 150]
    await log.close()


async def test_a_truncated_log_never_restarts_at_offset_zero(open_log: OpenLog, root: Path) -> None:
    log = open_log(segment_bytes=200)
    for number in range(4):
        await log.append(bytes([number]) * 150)
    await log.close()
    with closing(reader_of(root)) as reader:
        loaded = reader.durable_offsets()["worker-0"]
        reader.truncate_before("worker-0", loaded)
        log = open_log()
        await log.append(b"new")
        assert read_payloads(reader, after=loaded) == [b"new"]
    await log.close()


async def test_size_between_counts_unread_bytes(open_log: OpenLog, root: Path) -> None:
    log = open_log(segment_bytes=200)
    await log.append(b"a" * 150)
    with closing(reader_of(root)) as reader:
        first = reader.durable_offsets()["worker-0"]
        await log.append(b"b" * 100)
        await log.append(b"c" * 60)
        until = reader.durable_offsets()["worker-0"]
        header, frame = 30, 12
        assert reader.size_between("worker-0", after=first, until=until) == (
            header + frame + 100 + header + frame + 60
        )
        assert reader.size_between("worker-0", after=until, until=until) == 0
    await log.close()


BROKEN_CALLS = [
    pytest.param({"create"}, id="no-new-file"),
    pytest.param({"write"}, id="disk-full"),
    pytest.param({"sync"}, id="fsync-fails"),
    pytest.param({"sync_directory"}, id="directory-fsync-fails"),
    pytest.param({"write", "truncate"}, id="disk-full-and-cut-fails"),
    pytest.param({"sync", "truncate"}, id="fsync-and-cut-fail"),
    pytest.param({"sync of a segment", "truncate"}, id="fsync-of-the-segment-and-cut-fail"),
]


@pytest.mark.parametrize("segment_bytes", [100, 10_000], ids=["new-segment", "same-segment"])
@pytest.mark.parametrize("broken", BROKEN_CALLS)
async def test_failed_group_commit_is_rejected_never_read_and_the_log_recovers(
    open_log: OpenLog, root: Path, broken: set[str], segment_bytes: int
) -> None:
    file_ops = FailingDisk()
    log = open_log(file_ops=file_ops, segment_bytes=segment_bytes)
    await log.append(b"before" * 10)
    file_ops.broken = broken
    await asyncio.gather(log.append(b"refused" * 10), return_exceptions=True)
    responses = await asyncio.gather(
        log.append(b"refused" * 10), log.append(b"refused too" * 10), return_exceptions=True
    )
    if segment_bytes == 100 or broken & {"write", "sync", "sync of a segment"}:
        assert [type(response) for response in responses] == [LogUnavailable, LogUnavailable]
        expected = [b"before" * 10, b"after" * 10]
    else:  # the failed call was not used
        expected = [
            b"before" * 10,
            b"refused" * 10,
            b"refused" * 10,
            b"refused too" * 10,
            b"after" * 10,
        ]
    assert payloads_of(root) == expected[:-1]
    file_ops.broken = set()
    await log.append(b"after" * 10)
    assert payloads_of(root) == expected
    await log.close()
    assert payloads_of(root) == expected


def records_after_crash(root: Path) -> list[bytes]:
    """Return the records that a restart would read if the process were killed now.

    Reads an unlocked copy of the log.
    """
    with TemporaryDirectory() as copied:
        return payloads_of(Path(shutil.copytree(root, Path(copied, "log"))))


@pytest.mark.parametrize("segment_bytes", [100, 10_000], ids=["new-segment", "same-segment"])
async def test_record_that_could_not_be_truncated_is_not_read_after_a_crash(
    open_log: OpenLog, root: Path, segment_bytes: int
) -> None:
    file_ops = FailingDisk()
    log = open_log(file_ops=file_ops, segment_bytes=segment_bytes)
    await log.append(b"before" * 10)
    file_ops.broken = {"sync of a segment", "truncate"}
    with pytest.raises(LogUnavailable) as rejection:
        await log.append(b"refused" * 10)
    assert type(rejection.value) is LogUnavailable
    assert records_after_crash(root) == [b"before" * 10]
    file_ops.broken = set()
    await append_all(log, b"after" * 10)
    assert records_after_crash(root) == [b"before" * 10, b"after" * 10]
    await log.close()
    log = open_log(segment_bytes=segment_bytes)
    await log.append(b"last")
    await log.close()
    assert payloads_of(root) == [b"before" * 10, b"after" * 10, b"last"]


@pytest.mark.parametrize("segment_bytes", [100, 10_000], ids=["new-segment", "same-segment"])
async def test_record_that_may_be_read_after_a_crash_has_unknown_durability(
    open_log: OpenLog, root: Path, segment_bytes: int
) -> None:
    file_ops = FailingDisk()
    log = open_log(file_ops=file_ops, segment_bytes=segment_bytes)
    await log.append(b"before" * 10)
    file_ops.broken = {"sync", "truncate"}
    with pytest.raises(DurabilityUnknown):
        await log.append(b"uncertain" * 10)
    assert payloads_of(root) == [b"before" * 10]
    for _ in range(3):  # not written: the log probes the disk without them
        with pytest.raises(LogUnavailable) as rejection:
            await log.append(b"refused" * 10)
        assert type(rejection.value) is LogUnavailable
    assert records_after_crash(root)[1:] in ([], [b"uncertain" * 10])
    file_ops.broken = set()
    await log.append(b"after" * 10)
    assert records_after_crash(root) == [b"before" * 10, b"after" * 10]
    await log.close()


async def test_disk_failure_is_logged_when_it_begins_and_ends(open_log: OpenLog) -> None:
    file_ops = FailingDisk()
    with capture_logs() as lines:
        log = open_log(file_ops=file_ops)
        file_ops.broken = {"create"}
        for _ in range(20):
            with pytest.raises(LogUnavailable):
                await log.append(b"refused")
        file_ops.broken = set()
        await append_all(log, b"one", b"two")
        await log.close()
    assert lines == [
        {
            "event": "log_write_failed",
            "log_level": "error",
            "log": "worker-0",
            "reason": "no space left on device",
        },
        {"event": "log_write_resumed", "log_level": "info", "log": "worker-0"},
    ]


async def test_failed_record_is_not_read_after_a_restart(open_log: OpenLog, root: Path) -> None:
    file_ops = FailingDisk()
    log = open_log(file_ops=file_ops)
    await log.append(b"kept")
    file_ops.broken = {"sync of a segment"}
    with pytest.raises(LogUnavailable, match="no space left on device"):
        await log.append(b"refused")
    await log.close()
    assert payloads_of(root) == [b"kept"]
    log = open_log()
    assert payloads_of(root) == [b"kept"]
    await log.close()


async def test_torn_tail_is_truncated_when_there_is_no_writer(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await append_all(log, b"one", b"two")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    content_before = segment.read_bytes()
    segment.write_bytes(content_before + content_before[30:40])
    assert payloads_of(root) == [b"one", b"two"]
    assert segment.read_bytes() == content_before
    assert not (root.parent / "damaged").exists()


async def test_discarded_tail_is_reported(open_log: OpenLog, root: Path) -> None:
    log = open_log()
    await log.append(b"one")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    segment.write_bytes(segment.read_bytes() + b"half a record")
    with capture_logs() as lines:
        assert payloads_of(root) == [b"one"]
        assert payloads_of(root) == [b"one"]
    assert lines == [
        {"event": "log_tail_cut", "log_level": "warning", "log": "worker-0", "cut_bytes": 13}
    ]


async def test_complete_records_after_the_marker_are_recovered_after_a_power_cut(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await append_all(log, b"one", b"two")
    await log.close()
    (root / "worker-0" / "durable").unlink()
    assert payloads_of(root) == [b"one", b"two"]


async def test_corrupt_range_is_preserved_and_the_rest_is_read(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await append_all(log, b"one", b"two", b"three")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    content = segment.read_bytes()
    segment.write_bytes(content.replace(b"two", b"tvo"))
    with closing(reader_of(root)) as reader:
        end = reader.durable_offsets()["worker-0"]
        first = reader.read("worker-0", after=LOG_START, until=end, max_bytes=4096)
        second = reader.read("worker-0", after=first.end, until=end, max_bytes=4096)
    assert [record.payload for record in first.records] == [b"one"]
    assert [record.payload for record in second.records] == [b"three"]
    assert (first.damaged_bytes, second.damaged_bytes, second.end) == (0, 15, end)
    (kept,) = (root.parent / "damaged").iterdir()
    assert kept.name == f"worker-0-{1:020}-{45:010}.bin"
    assert kept.read_bytes().endswith(b"tvo")


@pytest.mark.parametrize("call", ["write", "sync", "sync_directory"])
async def test_corrupt_range_that_cannot_be_preserved_durably_is_not_skipped(
    open_log: OpenLog, root: Path, call: str
) -> None:
    log = open_log()
    await append_all(log, b"one", b"two", b"three")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    segment.write_bytes(segment.read_bytes().replace(b"two", b"tvo"))
    file_ops = FailingDisk()
    with closing(reader_of(root, file_ops=file_ops)) as reader:
        end = reader.durable_offsets()["worker-0"]
        first = reader.read("worker-0", after=LOG_START, until=end, max_bytes=4096)
        file_ops.broken = {call}
        with pytest.raises(OSError, match="No space left on device"):
            reader.read("worker-0", after=first.end, until=end, max_bytes=4096)
        file_ops.broken = set()
        second = reader.read("worker-0", after=first.end, until=end, max_bytes=4096)
    assert [record.payload for record in second.records] == [b"three"]
    (kept,) = (root.parent / "damaged").iterdir()
    assert kept.stat().st_size == 15


async def test_corrupt_last_record_is_preserved_and_new_ones_are_read(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await append_all(log, b"one", b"two")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    segment.write_bytes(segment.read_bytes().replace(b"two", b"tvo"))
    log = open_log()
    await log.append(b"three")
    assert payloads_of(root) == [b"one", b"three"]
    assert [path.stat().st_size for path in (root.parent / "damaged").iterdir()] == [15]
    await log.close()


async def test_text_that_looks_like_a_frame_is_not_read_after_corruption(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    forged = "\u00c1\u00ffMR\x00\x00\x00\x00\x00\x00\x00\x00".encode()
    await append_all(log, b"x" + forged, b"two")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    segment.write_bytes(segment.read_bytes().replace(b"x", b"y", 1))
    assert payloads_of(root) == [b"two"]


async def test_torn_first_write_of_a_segment_is_truncated_once(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await log.append(b"one")
    await log.close()
    (root / "worker-0" / f"{2:020}.segment").write_bytes(b"\xffMILL")
    file_ops = FailingDisk()
    with closing(SegmentReader(root, damaged=root / "damaged", file_ops=file_ops)) as reader:
        assert reader.durable_offsets() == {"worker-0": LogOffset(2, 0)}
        file_ops.broken = {"truncate", "sync"}
        assert read_payloads(reader) == [b"one"]
    log = open_log()
    await log.append(b"two")
    assert payloads_of(root) == [b"one", b"two"]
    await log.close()


async def test_log_is_not_ready_while_the_disk_fails_and_ready_after_recovery(
    open_log: OpenLog, root: Path
) -> None:
    file_ops = FailingDisk()
    log = open_log(file_ops=file_ops)
    await log.append(b"before")
    file_ops.broken = {"sync of a segment", "create"}
    with pytest.raises(LogUnavailable):
        await log.append(b"refused")
    assert not await log.is_ready()
    file_ops.broken = set()
    assert await log.is_ready()
    await log.append(b"after")
    await log.close()
    assert payloads_of(root) == [b"before", b"after"]


@contextmanager
def broken(segment: Path) -> Generator[None]:
    """Make reads of a segment fail, as on a failing disk."""
    segment.rename(segment.with_suffix(".away"))
    segment.mkdir()
    yield
    segment.rmdir()
    segment.with_suffix(".away").rename(segment)


async def test_unreadable_log_stops_at_the_failure_and_others_continue(
    open_log: OpenLog, root: Path
) -> None:
    logs = [open_log(f"worker-{number}", segment_bytes=100) for number in range(2)]
    for log in logs:
        await log.append(b"first" * 15)
        await log.append(b"second" * 15)
    clock, metrics = FixedClock(0), Metrics()
    reader = SegmentReader(root, damaged=root.parent / "damaged", clock=clock, metrics=metrics)
    with closing(reader), capture_logs() as lines:
        content_before = reader.durable_offsets()
        first = reader.read(
            "worker-0", after=LOG_START, until=content_before["worker-0"], max_bytes=50
        )
        with broken(root / "worker-0" / f"{2:020}.segment"):
            assert (
                reader.size_between("worker-0", after=first.end, until=content_before["worker-0"])
                == 0
            )
            with pytest.raises(OSError, match="Is a directory"):
                reader.read(
                    "worker-0", after=first.end, until=content_before["worker-0"], max_bytes=50
                )
            for _ in range(3):
                assert reader.durable_offsets() == {**content_before, "worker-0": first.end}
                clock.advance(1_000)
            assert reader.unreadable() == ["worker-0"]
            assert "headrace_logs_unreadable 1.0" in metrics.render().decode()
            assert read_payloads(reader, "worker-1") == [b"first" * 15, b"second" * 15]
        assert reader.durable_offsets()["worker-0"] == first.end  # its retry is not due yet
        clock.advance(60_000)
        assert reader.durable_offsets() == content_before
        assert reader.unreadable() == []
        assert "headrace_logs_unreadable 0.0" in metrics.render().decode()
        assert read_payloads(reader, after=first.end) == [b"second" * 15]
    assert [(line["event"], line.get("retry_in_s")) for line in lines] == [
        ("log_unreadable", 1.0),
        ("log_unreadable", 2.0),
        ("log_unreadable", 4.0),
        ("log_readable_again", None),
    ]
    for log in logs:
        await log.close()


async def test_log_with_an_unreadable_end_is_omitted_and_others_are_listed(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log("worker-1")
    await log.append(b"one")
    (root / "worker-0" / "durable").mkdir(parents=True)
    with closing(reader_of(root)) as reader:
        assert list(reader.durable_offsets()) == ["worker-1"]
        assert reader.unreadable() == ["worker-0"]
    await log.close()


@pytest.mark.skipif(sys.platform != "linux", reason="a file that opens and cannot be read")
async def test_log_whose_marker_cannot_be_read_takes_no_descriptor_at_each_retry(
    root: Path,
) -> None:
    (root / "worker-0").mkdir(parents=True)
    (root / "worker-0" / "durable").symlink_to("/proc/self/mem")
    clock = FixedClock(0)
    with closing(SegmentReader(root, damaged=root.parent / "damaged", clock=clock)) as reader:
        before = number_of_descriptors()
        for _ in range(3):
            assert reader.durable_offsets() == {}
            assert reader.unreadable() == ["worker-0"]
            clock.advance(60_000)
        assert number_of_descriptors() == before


async def test_log_is_not_read_by_an_old_marker_while_its_writer_recovers(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log(segment_bytes=100)
    await log.append(b"first" * 15)
    marker = root / "worker-0" / "durable"
    old_marker = marker.read_bytes()
    await log.append(b"second" * 15)
    await log.append(b"third" * 15)
    await log.close()
    marker.write_bytes(old_marker)
    file_ops, clock = FailingDisk(), FixedClock(0)
    file_ops.may_sync.clear()
    opening = asyncio.create_task(asyncio.to_thread(open_log, file_ops=file_ops))
    await asyncio.to_thread(file_ops.syncing.wait, 30)
    reader = SegmentReader(root, damaged=root.parent / "damaged", clock=clock)
    with closing(reader):
        assert await asyncio.to_thread(reader.durable_offsets) == {}
        assert reader.unreadable() == ["worker-0"]
        reading = asyncio.create_task(asyncio.to_thread(reader_of(root).durable_offsets))
        file_ops.may_sync.set()
        log = await opening
        clock.advance(1_000)
        assert read_payloads(reader) == [b"first" * 15, b"second" * 15, b"third" * 15]
        assert reader.unreadable() == []
        assert await reading == reader.durable_offsets()
    await log.close()


async def test_newest_segment_is_the_highest_number_of_a_file(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log(segment_bytes=100)
    with closing(reader_of(root)) as reader:
        assert reader.newest_segment("worker-0") == 0
        for number in range(1, 4):
            await log.append(b"x" * 90)
            assert reader.newest_segment("worker-0") == number
    await log.close()


async def test_deleted_log_acknowledges_nothing_and_is_recreated(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await log.append(b"before")
    with closing(reader_of(root)) as reader:
        before = reader.durable_offsets()["worker-0"]
        shutil.rmtree(root)
        with pytest.raises(LogUnavailable, match="the log was deleted"):
            await log.append(b"refused")
        await log.append(b"after")
        await append_all(log, b"later")
        assert reader.durable_offsets()["worker-0"] > before
        assert read_payloads(reader, after=before) == [b"after", b"later"]
    await log.close()
    assert payloads_of(root) == [b"after", b"later"]


async def test_disk_that_accepts_only_a_header_is_not_reported_as_recovered(
    open_log: OpenLog,
) -> None:
    file_ops = FailingDisk()
    with capture_logs() as lines:
        log = open_log(file_ops=file_ops)
        await log.append(b"small")
        file_ops.full_beyond = 1_000
        for _ in range(5):
            with pytest.raises(LogUnavailable):
                await log.append(b"large" * 1_000)
        file_ops.full_beyond = None
        await append_all(log, b"large" * 1_000, b"more")
        await log.close()
    assert [line["event"] for line in lines] == ["log_write_failed", "log_write_resumed"]
