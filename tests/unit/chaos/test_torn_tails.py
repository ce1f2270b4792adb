"""The crash test damages bytes behind the durable end only, and recovery reports the damage."""

import asyncio
import os
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from chaos.torn_tails import damage_tails
from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_format import segment_name
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.base.clock import FixedClock
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LOG_START

PAYLOADS = [b"one", b"two" * 100, b"three"]


class KilledWriter(FileOps):
    """Leaves the zeros that it was ahead with, as SIGKILL does."""

    def free_after(self, file: int, end: int) -> None:
        assert os.fstat(file).st_size > end


@pytest.mark.parametrize("seed", range(30))
async def test_damage_spares_what_is_durable_and_is_reported(seed: int, tmp_path: Path) -> None:
    root = tmp_path / "log"
    log = SegmentLog.open(root, "worker-0", metrics=Metrics(), clock=FixedClock(0))
    for payload in PAYLOADS:
        await log.append(payload)
    await log.close()

    segment = root / "worker-0" / segment_name(1)
    durable_bytes = segment.stat().st_size

    damaged = damage_tails(tmp_path, Random(seed))  # noqa: S311 - the same at every run

    tail = segment.read_bytes()[durable_bytes:]
    with (
        capture_logs() as lines,
        closing(SegmentReader(root, damaged=tmp_path / "damaged")) as reader,
    ):
        end = reader.durable_offsets()["worker-0"]
        chunk = reader.read("worker-0", after=LOG_START, until=end, max_bytes=10_000)
    assert [record.payload for record in chunk.records] == PAYLOADS
    assert [line["event"] for line in lines] == ["log_tail_cut"] * len(damaged)
    assert damaged == (["worker-0"] if tail.strip(b"\0") else [])
    assert tail


@pytest.mark.parametrize("seed", range(10))
async def test_damage_within_zeros_keeps_the_size_and_is_reported(
    seed: int, tmp_path: Path
) -> None:
    log = SegmentLog.open(
        tmp_path / "log",
        "worker-0",
        metrics=Metrics(),
        clock=FixedClock(0),
        file_ops=KilledWriter(),
    )
    await log.append(b"one")
    await log.close()
    segment = tmp_path / "log" / "worker-0" / segment_name(1)
    written = segment.read_bytes()

    damaged = damage_tails(tmp_path, Random(seed))  # noqa: S311 - the same at every run

    assert segment.stat().st_size == len(written)
    assert damaged == (["worker-0"] if segment.read_bytes() != written else [])
    with (
        capture_logs() as lines,
        closing(SegmentReader(tmp_path / "log", damaged=tmp_path / "damaged")) as reader,
    ):
        end = reader.durable_offsets()["worker-0"]
    assert end.offset == len(written.rstrip(b"\0"))
    assert [line["event"] for line in lines] == ["log_tail_cut"] * len(damaged)


@pytest.mark.parametrize("seed", range(30))
def test_zeros_behind_a_record_that_was_not_acknowledged_are_no_damage(
    seed: int, tmp_path: Path
) -> None:
    """The writer was killed after it wrote a record and before it noted that as durable."""
    written = asyncio.run(log_with_a_record_behind_its_marker(tmp_path / "log"))
    segment = tmp_path / "log" / "worker-0" / segment_name(1)

    damaged = damage_tails(tmp_path, Random(seed))  # noqa: S311 - the same at every run

    assert damaged == (["worker-0"] if segment.read_bytes().rstrip(b"\0") != written else [])
    with (
        capture_logs() as lines,
        closing(SegmentReader(tmp_path / "log", damaged=tmp_path / "damaged")) as reader,
    ):
        end = reader.durable_offsets()["worker-0"]
        reader.read("worker-0", after=LOG_START, until=end, max_bytes=10_000)
    assert bool(lines) == bool(damaged)


async def log_with_a_record_behind_its_marker(root: Path) -> bytes:
    """Make a log, and return the content of its only segment."""
    log = SegmentLog.open(root, "worker-0", metrics=Metrics(), clock=FixedClock(0))
    await log.append(b"acknowledged")
    marker = (root / "worker-0" / "durable").read_bytes()
    await log.append(b"written")
    await log.close()
    (root / "worker-0" / "durable").write_bytes(marker)
    return (root / "worker-0" / segment_name(1)).read_bytes()
