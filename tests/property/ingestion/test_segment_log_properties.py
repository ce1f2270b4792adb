"""After a crash, or damage at any byte, the log has every record acknowledged before it."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.ports.event_log import LoggedRecord, LogOffset
from testing.event_logs import WORKER, QuickDisk, open_log, records_of, segments_of
from testing.examples import examples


def append_groups(root: Path, groups: Sequence[Sequence[bytes]], segment_bytes: int) -> None:
    async def append() -> None:
        log = open_log(root, segment_bytes=segment_bytes, file_ops=QuickDisk())
        for group in groups:
            await asyncio.gather(*(log.append(payload) for payload in group))
        await log.close()

    asyncio.run(append())


def read_all(root: Path) -> list[LoggedRecord]:
    return records_of(root, max_bytes=200, file_ops=QuickDisk())


@contextmanager
def written(groups: Sequence[Sequence[bytes]], segment_bytes: int) -> Generator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "log"
        append_groups(root, groups, segment_bytes)
        yield root


payloads = st.binary(max_size=60) | st.text(max_size=30).map(str.encode)
groups = st.lists(st.lists(payloads, min_size=1, max_size=4), min_size=1, max_size=6)
sizes = st.sampled_from([60, 150, 10_000])
marks = st.sampled_from(["kept", "lost", "old"])
few = settings(max_examples=examples(60))


def age_mark(root: Path, mark: str) -> None:
    """Leave the marker as a power cut might: unchanged, missing, or at the start of the log."""
    if mark == "lost":
        (root / WORKER / "durable").unlink()
    if mark == "old":
        with closing(LogDirectory(root / WORKER, file_ops=QuickDisk())) as directory:
            directory.publish(LogOffset(1, 30))


@few
@given(groups, sizes, marks)
def test_all_appended_records_are_read_in_order(
    groups: list[list[bytes]], segment_bytes: int, mark: str
) -> None:
    with written(groups, segment_bytes) as root:
        age_mark(root, mark)
        assert [r.payload for r in read_all(root)] == [p for group in groups for p in group]


@few
@given(groups, sizes, marks, st.data())
def test_truncation_at_any_byte_keeps_all_records_before_it(
    groups: list[list[bytes]], segment_bytes: int, mark: str, data: st.DataObject
) -> None:
    with written(groups, segment_bytes) as root:
        before = read_all(root)
        last = segments_of(root)[-1]
        size = data.draw(st.integers(0, last.stat().st_size))
        os.truncate(last, size)
        age_mark(root, mark)
        cut = LogOffset(int(last.stem), size)
        expected = [record.payload for record in before if record.end <= cut]
        assert [record.payload for record in read_all(root)] == expected
        append_groups(root, [[b"new"]], segment_bytes)
        assert [record.payload for record in read_all(root)] == [*expected, b"new"]


@few
@given(groups, sizes, marks, payloads, st.integers(0, 50))
def test_any_torn_tail_is_truncated(
    groups: list[list[bytes]], segment_bytes: int, mark: str, tail: bytes, zeros: int
) -> None:
    with written(groups, segment_bytes) as root:
        before = [record.payload for record in read_all(root)]
        with segments_of(root)[-1].open("ab") as segment:
            segment.write(tail + bytes(zeros))
        age_mark(root, mark)
        append_groups(root, [[b"new"]], segment_bytes)
        assert [record.payload for record in read_all(root)] == [*before, b"new"]


@few
@given(groups, sizes, marks, st.integers(1, 255), st.data())
def test_flipped_byte_at_any_offset_loses_at_most_its_record(
    groups: list[list[bytes]], segment_bytes: int, mark: str, flip: int, data: st.DataObject
) -> None:
    with written(groups, segment_bytes) as root:
        before = read_all(root)
        segment = data.draw(st.sampled_from(segments_of(root)))
        content = bytearray(segment.read_bytes())
        offset = data.draw(st.integers(0, len(content) - 1))
        content[offset] ^= flip
        segment.write_bytes(content)
        age_mark(root, mark)
        hit = LogOffset(int(segment.stem), offset)
        expected = [r.payload for r in before if not r.start <= hit < r.end]
        assert [record.payload for record in read_all(root)] == expected
        append_groups(root, [[b"new"]], segment_bytes)
        assert [record.payload for record in read_all(root)] == [*expected, b"new"]


WRITER = """
    import asyncio, os, sys
    from pathlib import Path
    from headrace.adapters.event_log.segment_log import SegmentLog
    from headrace.base.clock import SystemClock
    from headrace.base.metrics import Metrics

    root, life = Path(sys.argv[1]), sys.argv[2]

    async def append(log, task):
        number = 0
        while True:
            name = f"{life}-{task}-{number}".encode()
            await log.append(name + b" " + name * (number % 50))
            os.write(1, name + b"\\n")
            number += 1

    async def main():
        log = SegmentLog.open(
            root, "worker-0", metrics=Metrics(), clock=SystemClock(), segment_bytes=100_000
        )
        await asyncio.gather(*(append(log, task) for task in range(8)))

    asyncio.run(main())
"""


def acknowledged_until_killed(root: Path, life: int, seconds: float) -> list[bytes]:
    """Let a writer append until it is killed; return the records it reported as durable."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(root), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        output = writer.stdout.readline()
        killer = threading.Timer(seconds, writer.kill)
        killer.start()
        output += writer.stdout.read()
        killer.join()
    assert writer.returncode == -signal.SIGKILL
    return output.split(b"\n")[:-1]


@pytest.mark.slow
def test_killed_writer_leaves_all_acknowledged_and_no_partial_records(tmp_path: Path) -> None:
    root, acknowledged = tmp_path / "log", set[bytes]()
    for life in range(10):
        acknowledged.update(acknowledged_until_killed(root, life, random.uniform(0, 0.3)))  # noqa: S311 - not a secret
        payloads = [record.payload for record in read_all(root)]
        names = [payload.partition(b" ")[0] for payload in payloads]
        assert len(names) == len(set(names))
        assert acknowledged <= set(names)
        for name, payload in zip(names, payloads, strict=True):
            number = int(name.rpartition(b"-")[2])
            assert payload == name + b" " + name * (number % 50)
