"""The crash test damages bytes behind the durable end only, and recovery reports the damage."""

from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from chaos.torn_tails import damage_tails
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.base.clock import FixedClock
from headrace.base.metrics import Metrics
from headrace.ports.event_log import LOG_START

PAYLOADS = [b"one", b"two" * 100, b"three"]


@pytest.mark.parametrize("seed", range(30))
async def test_damage_spares_what_is_durable_and_is_reported(seed: int, tmp_path: Path) -> None:
    root = tmp_path / "log"
    log = SegmentLog.open(root, "worker-0", metrics=Metrics(), clock=FixedClock(0))
    for payload in PAYLOADS:
        await log.append(payload)
    await log.close()

    damaged = damage_tails(tmp_path, Random(seed))  # noqa: S311 - the same at every run

    with (
        capture_logs() as lines,
        closing(SegmentReader(root, damaged=tmp_path / "damaged")) as reader,
    ):
        end = reader.durable_offsets()["worker-0"]
        chunk = reader.read("worker-0", after=LOG_START, until=end, max_bytes=10_000)
    assert damaged == ["worker-0"]
    assert [record.payload for record in chunk.records] == PAYLOADS
    assert [line["event"] for line in lines] == ["log_tail_cut"]
