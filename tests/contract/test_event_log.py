"""What every durable log must do, and what its files do when the disk or the process fails."""

import asyncio
import shutil
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from structlog.testing import capture_logs

from headrace.adapters.event_log.segment_directory import Disk
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.memory.log import MemoryLog
from headrace.base.clock import FixedClock
from headrace.base.errors import HeadraceError, LogUnavailable, LogUncertain, OperatorError
from headrace.base.telemetry import Metrics
from headrace.ports.event_log import LOG_START, EventLog, LogPosition, LogReader

pytestmark = pytest.mark.asyncio

OpenLog = Callable[..., SegmentLog]


class FailingDisk(Disk):
    """A disk on which chosen calls fail until it is mended, or wait until they are let go."""

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
        if "write" in self.broken:  # a full disk takes a part
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
            lock_patience_s=0,
            **options,  # type: ignore[arg-type]  # each test knows what it passes
        )

    return open_named


def reader_of(root: Path) -> SegmentReader:
    return SegmentReader(root, damaged=root.parent / "damaged")


def read_all(
    reader: LogReader, log: str = "worker-0", after: LogPosition = LOG_START, max_bytes: int = 4096
) -> list[bytes]:
    """Read from a place to the durable end, chunk by chunk."""
    until, payloads = reader.durable_ends()[log], list[bytes]()
    while after < until:
        chunk = reader.read(log, after=after, until=until, max_bytes=max_bytes)
        payloads += [record.payload for record in chunk.records]
        after = chunk.end
    return payloads


def recorded(root: Path) -> list[bytes]:
    with closing(reader_of(root)) as reader:
        return read_all(reader)


async def append_all(log: EventLog, *payloads: bytes) -> None:
    await asyncio.gather(*(log.append(payload) for payload in payloads))


@dataclass
class AnyLog:
    """A log of any kind, and how to look at what it keeps."""

    log: EventLog
    recorded: Callable[[], list[bytes]]


@pytest.fixture(params=["segments", "memory"])
def any_log(request: pytest.FixtureRequest, open_log: OpenLog, root: Path) -> AnyLog:
    if request.param == "segments":
        return AnyLog(open_log(), lambda: recorded(root))
    memory = MemoryLog()
    return AnyLog(memory, lambda: memory.records)


async def test_appended_records_are_kept_in_order_of_appending(any_log: AnyLog) -> None:
    await append_all(any_log.log, b"one", b"", b"two" * 5000)
    await any_log.log.append(b"three")
    assert any_log.recorded() == [b"one", b"", b"two" * 5000, b"three"]
    await any_log.log.close()


async def test_records_that_are_handed_in_are_kept_before_it_is_told(any_log: AnyLog) -> None:
    kept: list[list[bytes]] = []
    told = asyncio.Event()

    def tell(failure: HeadraceError | None) -> None:
        assert failure is None
        kept.append(any_log.recorded())
        if len(kept) == 2:
            told.set()

    any_log.log.hand_in(b"one", tell)
    any_log.log.hand_in(b"two", tell)
    assert kept == []
    await told.wait()
    assert kept == [[b"one", b"two"]] * 2
    await any_log.log.close()
    with pytest.raises(LogUnavailable):
        any_log.log.hand_in(b"too late", tell)
    assert any_log.recorded() == [b"one", b"two"]


async def test_log_is_ready_until_it_is_closed_and_takes_nothing_then(any_log: AnyLog) -> None:
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
        end = reader.durable_ends()["worker-0"]
        first, second = reader.read("worker-0", after=LOG_START, until=end, max_bytes=9).records
        assert (first.end, second.end) == (second.start, end)
        again = reader.read("worker-0", after=first.end, until=end, max_bytes=9)
        assert again.records == [second]
    await log.close()


async def test_a_second_writer_of_a_log_is_refused_with_a_sentence(open_log: OpenLog) -> None:
    log = open_log()
    with pytest.raises(OperatorError, match=r"^The log .*worker-0 is in use by another process\.$"):
        open_log()
    await log.close()
    await open_log().close()


async def test_logs_are_read_apart(open_log: OpenLog, root: Path) -> None:
    logs = [open_log(f"worker-{number}") for number in range(2)]
    for number, log in enumerate(logs):
        await log.append(b"of %d" % number)
    with closing(reader_of(root)) as reader:
        assert [read_all(reader, name) for name in reader.durable_ends()] == [[b"of 0"], [b"of 1"]]
    for log in logs:
        await log.close()


async def test_no_log_has_no_end(root: Path) -> None:
    with closing(reader_of(root)) as reader:
        assert reader.durable_ends() == {}


async def test_opened_log_without_records_ends_at_the_start(open_log: OpenLog, root: Path) -> None:
    log = open_log()
    with closing(reader_of(root)) as reader:
        assert reader.durable_ends() == {"worker-0": LOG_START}
    await log.close()


async def test_what_is_not_synced_yet_is_not_read(open_log: OpenLog, root: Path) -> None:
    disk = FailingDisk()
    log = open_log(disk=disk)
    await log.append(b"synced")
    disk.may_sync.clear()
    disk.syncing.clear()
    waiting = asyncio.create_task(log.append(b"being synced"))
    await asyncio.to_thread(disk.syncing.wait, 30)
    assert recorded(root) == [b"synced"]
    assert not waiting.done()
    disk.may_sync.set()
    await waiting
    assert recorded(root) == [b"synced", b"being synced"]
    await log.close()


async def test_cancelled_caller_does_not_take_its_record_back(
    open_log: OpenLog, root: Path
) -> None:
    disk = FailingDisk()
    log = open_log(disk=disk)
    disk.may_sync.clear()
    cancelled = asyncio.create_task(log.append(b"cancelled"))
    await asyncio.to_thread(disk.syncing.wait, 30)
    cancelled.cancel()
    later = asyncio.create_task(log.append(b"later"))
    await asyncio.sleep(0)
    disk.may_sync.set()
    await later
    assert cancelled.cancelled()
    assert recorded(root) == [b"cancelled", b"later"]
    await log.close()


async def test_close_makes_durable_what_was_appended_and_may_be_called_twice(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    waiting = asyncio.create_task(log.append(b"last"))
    await asyncio.sleep(0)
    await log.close()
    await log.close()
    assert waiting.done()
    assert recorded(root) == [b"last"]


async def test_full_segments_are_followed_by_new_ones(open_log: OpenLog, root: Path) -> None:
    log = open_log(segment_bytes=200)
    payloads = [bytes([number]) * 90 for number in range(7)]
    for payload in payloads:
        await log.append(payload)
    assert recorded(root) == payloads
    assert len(list((root / "worker-0").glob("*.segment"))) == 7
    await log.close()


async def test_record_longer_than_a_segment_is_kept_whole(open_log: OpenLog, root: Path) -> None:
    log = open_log(segment_bytes=200)
    await append_all(log, b"a" * 150, b"b" * 100_000, b"c")
    assert recorded(root) == [b"a" * 150, b"b" * 100_000, b"c"]
    await log.close()


async def test_reopened_log_goes_on_in_a_new_segment(open_log: OpenLog, root: Path) -> None:
    for payload in (b"one", b"two", b"three"):
        log = open_log()
        await log.append(payload)
        await log.close()
    assert recorded(root) == [b"one", b"two", b"three"]
    with closing(reader_of(root)) as reader:
        assert reader.durable_ends()["worker-0"].segment == 3


async def test_removed_segments_are_gone_and_the_rest_is_read(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log(segment_bytes=200)
    for number in range(4):
        await log.append(bytes([number]) * 150)
    with closing(reader_of(root)) as reader:
        reader.remove_before("worker-0", LogPosition(3, 50))
        reader.remove_before("worker-0", LogPosition(3, 50))
        assert read_all(reader) == [b"\x02" * 150, b"\x03" * 150]
    await log.close()


async def test_a_log_whose_segments_were_removed_never_counts_from_the_start_again(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log(segment_bytes=200)
    for number in range(4):
        await log.append(bytes([number]) * 150)
    await log.close()
    with closing(reader_of(root)) as reader:
        loaded = reader.durable_ends()["worker-0"]
        reader.remove_before("worker-0", loaded)
        log = open_log()
        await log.append(b"new")
        assert read_all(reader, after=loaded) == [b"new"]
    await log.close()


async def test_bytes_between_counts_what_is_to_be_read(open_log: OpenLog, root: Path) -> None:
    log = open_log(segment_bytes=200)
    await log.append(b"a" * 150)
    with closing(reader_of(root)) as reader:
        first = reader.durable_ends()["worker-0"]
        await log.append(b"b" * 100)
        await log.append(b"c" * 60)
        until = reader.durable_ends()["worker-0"]
        header, frame = 30, 12
        assert reader.bytes_between("worker-0", after=first, until=until) == (
            header + frame + 100 + header + frame + 60
        )
        assert reader.bytes_between("worker-0", after=until, until=until) == 0
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
async def test_failed_group_is_refused_whole_never_read_and_the_log_recovers(
    open_log: OpenLog, root: Path, broken: set[str], segment_bytes: int
) -> None:
    disk = FailingDisk()
    log = open_log(disk=disk, segment_bytes=segment_bytes)
    await log.append(b"before" * 10)
    disk.broken = broken
    await asyncio.gather(log.append(b"refused" * 10), return_exceptions=True)
    replies = await asyncio.gather(
        log.append(b"refused" * 10), log.append(b"refused too" * 10), return_exceptions=True
    )
    if segment_bytes == 100 or broken & {"write", "sync", "sync of a segment"}:
        assert [type(reply) for reply in replies] == [LogUnavailable, LogUnavailable]
        expected = [b"before" * 10, b"after" * 10]
    else:  # nothing was asked of the broken call
        expected = [
            b"before" * 10,
            b"refused" * 10,
            b"refused" * 10,
            b"refused too" * 10,
            b"after" * 10,
        ]
    assert recorded(root) == expected[:-1]
    disk.broken = set()
    await log.append(b"after" * 10)
    assert recorded(root) == expected
    await log.close()
    assert recorded(root) == expected


def recorded_after_a_crash(root: Path) -> list[bytes]:
    """Return what is read when the process is killed now: of a copy that nobody holds."""
    with TemporaryDirectory() as copied:
        return recorded(Path(shutil.copytree(root, Path(copied, "log"))))


@pytest.mark.parametrize("segment_bytes", [100, 10_000], ids=["new-segment", "same-segment"])
async def test_record_that_could_not_be_cut_off_is_not_read_after_a_crash(
    open_log: OpenLog, root: Path, segment_bytes: int
) -> None:
    disk = FailingDisk()
    log = open_log(disk=disk, segment_bytes=segment_bytes)
    await log.append(b"before" * 10)
    disk.broken = {"sync of a segment", "truncate"}
    with pytest.raises(LogUnavailable) as refusal:
        await log.append(b"refused" * 10)
    assert type(refusal.value) is LogUnavailable
    assert recorded_after_a_crash(root) == [b"before" * 10]
    disk.broken = set()
    await append_all(log, b"after" * 10)
    assert recorded_after_a_crash(root) == [b"before" * 10, b"after" * 10]
    await log.close()
    log = open_log(segment_bytes=segment_bytes)
    await log.append(b"last")
    await log.close()
    assert recorded(root) == [b"before" * 10, b"after" * 10, b"last"]


@pytest.mark.parametrize("segment_bytes", [100, 10_000], ids=["new-segment", "same-segment"])
async def test_record_that_may_be_read_after_a_crash_is_not_refused_but_uncertain(
    open_log: OpenLog, root: Path, segment_bytes: int
) -> None:
    disk = FailingDisk()
    log = open_log(disk=disk, segment_bytes=segment_bytes)
    await log.append(b"before" * 10)
    disk.broken = {"sync", "truncate"}
    with pytest.raises(LogUncertain):
        await log.append(b"uncertain" * 10)
    assert recorded(root) == [b"before" * 10]
    for _ in range(3):  # of these nothing is written: the disk is tried without them
        with pytest.raises(LogUnavailable) as refusal:
            await log.append(b"refused" * 10)
        assert type(refusal.value) is LogUnavailable
    assert recorded_after_a_crash(root)[1:] in ([], [b"uncertain" * 10])
    disk.broken = set()
    await log.append(b"after" * 10)
    assert recorded_after_a_crash(root) == [b"before" * 10, b"after" * 10]
    await log.close()


async def test_failing_disk_is_told_when_it_begins_and_when_it_ends(open_log: OpenLog) -> None:
    disk = FailingDisk()
    with capture_logs() as lines:
        log = open_log(disk=disk)
        disk.broken = {"create"}
        for _ in range(20):
            with pytest.raises(LogUnavailable):
                await log.append(b"refused")
        disk.broken = set()
        await append_all(log, b"one", b"two")
        await log.close()
    assert lines == [
        {
            "event": "log_write_failed",
            "log_level": "error",
            "log": "worker-0",
            "reason": "[Errno 28] No space left on device",
        },
        {"event": "log_write_resumed", "log_level": "info", "log": "worker-0"},
    ]


async def test_failed_record_is_not_read_after_a_restart_without_another_append(
    open_log: OpenLog, root: Path
) -> None:
    disk = FailingDisk()
    log = open_log(disk=disk)
    await log.append(b"kept")
    disk.broken = {"sync of a segment"}
    with pytest.raises(LogUnavailable, match="No space left on device"):
        await log.append(b"refused")
    await log.close()
    assert recorded(root) == [b"kept"]
    log = open_log()
    assert recorded(root) == [b"kept"]
    await log.close()


async def test_torn_tail_is_cut_off_when_there_is_no_writer(open_log: OpenLog, root: Path) -> None:
    log = open_log()
    await append_all(log, b"one", b"two")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole[30:40])
    assert recorded(root) == [b"one", b"two"]
    assert segment.read_bytes() == whole
    assert not (root.parent / "damaged").exists()


async def test_what_is_cut_off_is_reported(open_log: OpenLog, root: Path) -> None:
    log = open_log()
    await log.append(b"one")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    segment.write_bytes(segment.read_bytes() + b"half a record")
    with capture_logs() as lines:
        assert recorded(root) == [b"one"]
        assert recorded(root) == [b"one"]
    assert lines == [
        {"event": "log_tail_cut", "log_level": "warning", "log": "worker-0", "cut_bytes": 13}
    ]


async def test_whole_records_behind_the_mark_are_found_after_a_power_cut(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await append_all(log, b"one", b"two")
    await log.close()
    (root / "worker-0" / "durable").unlink()
    assert recorded(root) == [b"one", b"two"]


async def test_damage_is_set_aside_and_the_rest_is_read(open_log: OpenLog, root: Path) -> None:
    log = open_log()
    await append_all(log, b"one", b"two", b"three")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    content = segment.read_bytes()
    segment.write_bytes(content.replace(b"two", b"tvo"))
    with closing(reader_of(root)) as reader:
        end = reader.durable_ends()["worker-0"]
        first = reader.read("worker-0", after=LOG_START, until=end, max_bytes=4096)
        second = reader.read("worker-0", after=first.end, until=end, max_bytes=4096)
    assert [record.payload for record in first.records] == [b"one"]
    assert [record.payload for record in second.records] == [b"three"]
    assert (first.damaged_bytes, second.damaged_bytes, second.end) == (0, 15, end)
    (kept,) = (root.parent / "damaged").iterdir()
    assert kept.name == f"worker-0-{1:020}-{45:010}.bin"
    assert kept.read_bytes().endswith(b"tvo")


async def test_damaged_last_record_is_set_aside_and_new_ones_are_read(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await append_all(log, b"one", b"two")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    segment.write_bytes(segment.read_bytes().replace(b"two", b"tvo"))
    log = open_log()
    await log.append(b"three")
    assert recorded(root) == [b"one", b"three"]
    assert [path.stat().st_size for path in (root.parent / "damaged").iterdir()] == [15]
    await log.close()


async def test_a_text_that_looks_like_a_frame_is_not_read_behind_damage(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    forged = "\u00c1\u00ffMR\x00\x00\x00\x00\x00\x00\x00\x00".encode()
    await append_all(log, b"x" + forged, b"two")
    await log.close()
    segment = root / "worker-0" / f"{1:020}.segment"
    segment.write_bytes(segment.read_bytes().replace(b"x", b"y", 1))
    assert recorded(root) == [b"two"]


async def test_torn_first_write_of_a_segment_is_cut_off_once(open_log: OpenLog, root: Path) -> None:
    log = open_log()
    await log.append(b"one")
    await log.close()
    (root / "worker-0" / f"{2:020}.segment").write_bytes(b"\xffMILL")
    disk = FailingDisk()
    with closing(SegmentReader(root, damaged=root / "damaged", disk=disk)) as reader:
        assert reader.durable_ends() == {"worker-0": LogPosition(2, 0)}
        disk.broken = {"truncate", "sync"}
        assert read_all(reader) == [b"one"]
    log = open_log()
    await log.append(b"two")
    assert recorded(root) == [b"one", b"two"]
    await log.close()


async def test_log_is_not_ready_while_the_disk_fails_and_ready_when_it_is_mended(
    open_log: OpenLog, root: Path
) -> None:
    disk = FailingDisk()
    log = open_log(disk=disk)
    await log.append(b"before")
    disk.broken = {"sync of a segment", "create"}
    with pytest.raises(LogUnavailable):
        await log.append(b"refused")
    assert not await log.is_ready()
    disk.broken = set()
    assert await log.is_ready()
    await log.append(b"after")
    await log.close()
    assert recorded(root) == [b"before", b"after"]


@contextmanager
def broken(segment: Path) -> Generator[None]:
    """Let a segment give an error to whoever reads it, as a failing disk does."""
    segment.rename(segment.with_suffix(".away"))
    segment.mkdir()
    yield
    segment.rmdir()
    segment.with_suffix(".away").rename(segment)


async def test_log_that_cannot_be_read_ends_there_until_it_can_and_others_go_on(
    open_log: OpenLog, root: Path
) -> None:
    logs = [open_log(f"worker-{number}", segment_bytes=100) for number in range(2)]
    for log in logs:
        await log.append(b"first" * 15)
        await log.append(b"second" * 15)
    clock, metrics = FixedClock(0), Metrics()
    reader = SegmentReader(root, damaged=root.parent / "damaged", clock=clock, metrics=metrics)
    with closing(reader), capture_logs() as lines:
        whole = reader.durable_ends()
        first = reader.read("worker-0", after=LOG_START, until=whole["worker-0"], max_bytes=50)
        with broken(root / "worker-0" / f"{2:020}.segment"):
            assert reader.bytes_between("worker-0", after=first.end, until=whole["worker-0"]) == 0
            with pytest.raises(OSError, match="Is a directory"):
                reader.read("worker-0", after=first.end, until=whole["worker-0"], max_bytes=50)
            for _ in range(3):
                assert reader.durable_ends() == {**whole, "worker-0": first.end}
                clock.advance(1_000)
            assert reader.unreadable() == ["worker-0"]
            assert "headrace_logs_unreadable 1.0" in metrics.render().decode()
            assert read_all(reader, "worker-1") == [b"first" * 15, b"second" * 15]
        assert reader.durable_ends()["worker-0"] == first.end  # it is not tried all the time
        clock.advance(60_000)
        assert reader.durable_ends() == whole
        assert reader.unreadable() == []
        assert "headrace_logs_unreadable 0.0" in metrics.render().decode()
        assert read_all(reader, after=first.end) == [b"second" * 15]
    assert [(line["event"], line.get("retry_in_s")) for line in lines] == [
        ("log_unreadable", 1.0),
        ("log_unreadable", 2.0),
        ("log_unreadable", 4.0),
        ("log_readable_again", None),
    ]
    for log in logs:
        await log.close()


async def test_log_whose_end_cannot_be_told_is_left_out_and_others_are_there(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log("worker-1")
    await log.append(b"one")
    (root / "worker-0" / "durable").mkdir(parents=True)
    with closing(reader_of(root)) as reader:
        assert list(reader.durable_ends()) == ["worker-1"]
        assert reader.unreadable() == ["worker-0"]
    await log.close()


async def test_nothing_is_acknowledged_into_a_log_that_was_deleted_and_it_is_made_again(
    open_log: OpenLog, root: Path
) -> None:
    log = open_log()
    await log.append(b"before")
    with closing(reader_of(root)) as reader:
        before = reader.durable_ends()["worker-0"]
        shutil.rmtree(root)
        with pytest.raises(LogUnavailable, match="the log was deleted"):
            await log.append(b"refused")
        await log.append(b"after")
        await append_all(log, b"later")
        assert reader.durable_ends()["worker-0"] > before
        assert read_all(reader, after=before) == [b"after", b"later"]
    await log.close()
    assert recorded(root) == [b"after", b"later"]


async def test_disk_that_takes_a_header_and_no_record_is_not_told_as_mended(
    open_log: OpenLog,
) -> None:
    disk = FailingDisk()
    with capture_logs() as lines:
        log = open_log(disk=disk)
        await log.append(b"small")
        disk.full_beyond = 1_000
        for _ in range(5):
            with pytest.raises(LogUnavailable):
                await log.append(b"large" * 1_000)
        disk.full_beyond = None
        await append_all(log, b"large" * 1_000, b"more")
        await log.close()
    assert [line["event"] for line in lines] == ["log_write_failed", "log_write_resumed"]
