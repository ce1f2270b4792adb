"""The crash test damages bytes behind the durable end only, and recovery reports the damage."""

import asyncio
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from chaos.torn_tails import damage_tails
from testing.event_logs import (
    WORKER,
    KilledWriter,
    append,
    open_log,
    payloads_of,
    reader_of,
    segments_of,
)

PAYLOADS = [b"one", b"two" * 100, b"three"]


@pytest.mark.parametrize("seed", range(30))
def test_damage_spares_what_is_durable_and_is_reported(seed: int, tmp_path: Path) -> None:
    root = tmp_path / "log"
    append(root, *PAYLOADS)
    (segment,) = segments_of(root)
    durable_bytes = segment.stat().st_size

    damaged = damage_tails(tmp_path, Random(seed))  # noqa: S311 - the same at every run

    tail = segment.read_bytes()[durable_bytes:]
    with capture_logs() as lines:
        assert payloads_of(root) == PAYLOADS
    assert [line["event"] for line in lines] == ["log_tail_cut"] * len(damaged)
    assert damaged == ([WORKER] if tail.strip(b"\0") else [])
    assert tail


@pytest.mark.parametrize("seed", range(10))
def test_damage_within_zeros_keeps_the_size_and_is_reported(seed: int, tmp_path: Path) -> None:
    root = tmp_path / "log"
    append(root, b"one", file_ops=KilledWriter())
    (segment,) = segments_of(root)
    written = segment.read_bytes()
    assert written.endswith(b"\0")

    damaged = damage_tails(tmp_path, Random(seed))  # noqa: S311 - the same at every run

    assert segment.stat().st_size == len(written)
    assert damaged == ([WORKER] if segment.read_bytes() != written else [])
    with capture_logs() as lines, closing(reader_of(root)) as reader:
        end = reader.durable_offsets()[WORKER]
    assert end.offset == len(written.rstrip(b"\0"))
    assert [line["event"] for line in lines] == ["log_tail_cut"] * len(damaged)


@pytest.mark.parametrize("seed", range(30))
def test_zeros_behind_a_record_that_was_not_acknowledged_are_no_damage(
    seed: int, tmp_path: Path
) -> None:
    """The writer was killed after it wrote a record and before it noted that as durable."""
    root = tmp_path / "log"
    written = asyncio.run(log_with_a_record_behind_its_marker(root))
    (segment,) = segments_of(root)

    damaged = damage_tails(tmp_path, Random(seed))  # noqa: S311 - the same at every run

    assert damaged == ([WORKER] if segment.read_bytes().rstrip(b"\0") != written else [])
    with capture_logs() as lines:
        payloads_of(root)
    assert bool(lines) == bool(damaged)


async def log_with_a_record_behind_its_marker(root: Path) -> bytes:
    """Make a log, and return the content of its only segment."""
    log = open_log(root)
    await log.append(b"acknowledged")
    marker = (root / WORKER / "durable").read_bytes()
    await log.append(b"written")
    await log.close()
    (root / WORKER / "durable").write_bytes(marker)
    (segment,) = segments_of(root)
    return segment.read_bytes()
