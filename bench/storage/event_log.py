"""The durable log on plain segment files, SQLite and LMDB, measured in interleaved rounds.

Run: pip install lmdb && python -m bench.storage.event_log [--folder DIR] [--rounds N]
Simulate a disk whose flush takes 1 ms:
    cc -shared -fPIC -o slow.so bench/storage/slow_flush.c -ldl
    LD_PRELOAD=./slow.so FLUSH_US=1000 python -m bench.storage.event_log

Every value is the median of the rounds. The percentage in brackets is the speed relative to segment
files in the same round, also as a median: 100 % is equally fast, below 67 % costs more than a
third.
"""

import argparse
import asyncio
import importlib.util
import os
import platform
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import uvloop
from msgspec import Struct

from bench.storage.log_candidates import (
    Candidate,
    LmdbTree,
    SegmentFiles,
    SqliteTable,
    framed,
    unframed,
)
from headrace.adapters.event_log.segment_log import SegmentLog
from headrace.base.logs import configure_logging
from headrace.ports.event_log import LogOffset

RECORD_BYTES = 400
SINGLE_APPENDS = 200
GROUPS = 100
GROUP_RECORDS = 100
APPENDERS = 64
APPENDS_EACH = 50
FILL_BYTES = 256 * 1024 * 1024
FILL_GROUP_RECORDS = 1000
RECOVERY_BYTES = 60 * 1024 * 1024  # nearly a whole segment: the most that recovery reads
READ_BYTES = 1024 * 1024  # as the loader requests

MetricValues = dict[str, float]


class Row(Struct, frozen=True):
    """One line of the table. `is_compared` is true for speeds."""

    metric: str
    title: str
    unit: str
    digits: int = 1
    higher_is_better: bool = True
    is_compared: bool = True


ROWS = (
    Row("single", "one record, one fsync", "ms", digits=3, higher_is_better=False),
    Row("single_kb", "written for it", "kB", is_compared=False),
    Row("flushes", "flushes of the disk for it", "", digits=2, is_compared=False),
    Row("group", f"{GROUP_RECORDS} records, one fsync", "ms", digits=3, higher_is_better=False),
    Row("group_kb", "written for them", "kB", is_compared=False),
    Row("group_cpu", "their CPU a record", "µs", higher_is_better=False),
    Row("acks", f"{APPENDERS} appenders", "acks/s", digits=0),
    Row("ack", "their wait, median", "ms", digits=3, higher_is_better=False),
    Row("bulk", f"groups of {FILL_GROUP_RECORDS:,}, one fsync each", "MB/s"),
    Row("read", "reader behind the writer", "records/s", digits=0),
    Row("read_mb", "the same", "MB/s"),
    Row("remove", "delete 256 MB", "ms", higher_is_better=False),
    Row("disk", "on disk after 256 MB", "MB", digits=0, is_compared=False),
    Row("left", "on disk after deleting", "MB", digits=0, is_compared=False),
    Row("recover", "open after a crash at 60 MB", "ms", is_compared=False),
    Row("lost", "whole records lost then", "", digits=0, is_compared=False),
)


class GroupCost(Struct, frozen=True):
    """Cost of group appends: median time, CPU per record, bytes written and flushes per group."""

    median_ms: float
    cpu_us: float
    written_kb: float
    flushes: float


class CandidateSpec(Struct, frozen=True):
    """How to open a candidate, encode records for it, and tear its last append as a crash does."""

    open: Callable[[Path], Candidate]
    pieces: Callable[[Sequence[bytes]], list[bytes]]
    tear: Callable[[Path], None]


CANDIDATES: Mapping[str, CandidateSpec] = {
    "segments": CandidateSpec(SegmentFiles, framed, SegmentFiles.tear),
    "SQLite": CandidateSpec(SqliteTable, unframed, SqliteTable.tear),
    "LMDB": CandidateSpec(LmdbTree, unframed, LmdbTree.tear),
}


def measure_groups(spec: CandidateSpec, folder: Path, *, groups: int, size: int) -> GroupCost:
    log = spec.open(folder)
    records = [os.urandom(RECORD_BYTES) for _ in range(size)]
    times_ms: list[float] = []
    cpu_s, bytes_before, flushes_before = time.process_time(), written_bytes(), flushes(folder)
    for _ in range(groups):
        started = time.perf_counter()
        append(log, spec.pieces(records))
        times_ms.append((time.perf_counter() - started) * 1e3)
    cost = GroupCost(
        median_ms=statistics.median(times_ms),
        cpu_us=(time.process_time() - cpu_s) * 1e6 / (groups * size),
        written_kb=(written_bytes() - bytes_before) / groups / 1e3,
        flushes=(flushes(folder) - flushes_before) / groups,
    )
    log.close()
    return cost


def written_bytes() -> int:
    """Return the bytes that this process has written to disk, in whole pages (Linux)."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["write_bytes"])


def flushes(folder: Path) -> int:
    """Return the number of disk cache flushes by all processes (Linux)."""
    device = folder.stat().st_dev
    counters = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    return int(counters.read_text().split()[15]) if counters.exists() else 0


def append(log: Candidate, pieces: list[bytes]) -> None:
    failure = log.append(pieces)
    assert failure is None, failure


async def measure_appenders(log: Candidate) -> tuple[float, float]:
    """Return acknowledgements per second and the median latency in milliseconds.

    The product's own `SegmentLog` groups the appends for all candidates; only the storage differs.
    """
    latencies_ms: list[float] = []
    segment_log = SegmentLog(cast("Any", log))  # it calls append and close, which each has

    async def append_some() -> None:
        for _ in range(APPENDS_EACH):
            started = time.perf_counter()
            await segment_log.append(os.urandom(RECORD_BYTES))
            latencies_ms.append((time.perf_counter() - started) * 1e3)

    started = time.perf_counter()
    await asyncio.gather(*(append_some() for _ in range(APPENDERS)))
    seconds = time.perf_counter() - started
    await segment_log.close()
    return len(latencies_ms) / seconds, statistics.median(latencies_ms)


def fill(spec: CandidateSpec, log: Candidate, size: int) -> int:
    """Append `size` bytes of records and return the number of records."""
    groups = size // RECORD_BYTES // FILL_GROUP_RECORDS
    records = [os.urandom(RECORD_BYTES) for _ in range(FILL_GROUP_RECORDS)]
    for _ in range(groups):
        append(log, spec.pieces(records))
    return groups * FILL_GROUP_RECORDS


def read_all(log: Candidate) -> int:
    """Read all records as the loader does, and return their number."""
    count, offset, end = 0, LogOffset(0, 0), log.end()
    while offset < end:
        chunk = log.read(offset, READ_BYTES)
        count, offset = count + len(chunk.records), chunk.end
    return count


def measure_loading(spec: CandidateSpec, folder: Path) -> MetricValues:
    log = spec.open(folder)
    started = time.perf_counter()
    count = fill(spec, log, FILL_BYTES)
    filled_s = time.perf_counter() - started
    on_disk = disk_mb(folder)
    started = time.perf_counter()
    assert read_all(log) == count
    read_s = time.perf_counter() - started
    started = time.perf_counter()
    log.truncate_before(log.end())
    removed_ms = (time.perf_counter() - started) * 1e3
    left = disk_mb(folder)
    log.close()
    return {
        "bulk": count * RECORD_BYTES / filled_s / 1e6,
        "read": count / read_s,
        "read_mb": count * RECORD_BYTES / read_s / 1e6,
        "remove": removed_ms,
        "disk": on_disk,
        "left": left,
    }


def measure_recovery(spec: CandidateSpec, folder: Path) -> MetricValues:
    """Copy the files of an open log, tear the last append, and open the copy."""
    log = spec.open(folder / "whole")
    count = fill(spec, log, RECOVERY_BYTES)
    append(log, spec.pieces([os.urandom(RECORD_BYTES)]))
    crashed = folder / "crashed"
    shutil.copytree(folder / "whole", crashed)
    log.close()
    spec.tear(crashed)
    started = time.perf_counter()
    recovered = spec.open(crashed)
    recovered.end()
    opened_ms = (time.perf_counter() - started) * 1e3
    left = read_all(recovered)
    recovered.close()
    return {"recover": opened_ms, "lost": count - left}


def measure(spec: CandidateSpec, folder: Path) -> MetricValues:
    """Measure one candidate once, each part in its own files."""
    single = measure_groups(spec, folder / "append", groups=SINGLE_APPENDS, size=1)
    group = measure_groups(spec, folder / "append", groups=GROUPS, size=GROUP_RECORDS)
    acks, ack_ms = asyncio.run(measure_appenders(spec.open(folder / "append")))
    return {
        "single": single.median_ms,
        "single_kb": single.written_kb,
        "flushes": single.flushes,
        "group": group.median_ms,
        "group_kb": group.written_kb,
        "group_cpu": group.cpu_us,
        "acks": acks,
        "ack": ack_ms,
        **measure_loading(spec, folder / "load"),
        **measure_recovery(spec, folder),
    }


def disk_mb(folder: Path) -> float:
    """Return the disk usage of a folder in millions of bytes."""
    files = (file.stat() for file in folder.rglob("*") if file.is_file())
    return sum(file.st_blocks * 512 for file in files) / 1e6


def run_rounds(folder: Path, rounds: int) -> Mapping[str, list[MetricValues]]:
    """Measure the candidates in turn; each round starts with a different one."""
    names = [name for name in CANDIDATES if name != "LMDB" or importlib.util.find_spec("lmdb")]
    results: dict[str, list[MetricValues]] = {name: [] for name in names}
    for number in range(rounds):
        for at in range(len(names)):
            name = names[(number + at) % len(names)]
            with tempfile.TemporaryDirectory(dir=folder) as directory:
                results[name].append(measure(CANDIDATES[name], Path(directory)))
    return results


def cell(row: Row, metrics: list[MetricValues], base: list[MetricValues]) -> str:
    value = statistics.median(one[row.metric] for one in metrics)
    text = f"{value:,.{row.digits}f} {row.unit}".rstrip()
    if metrics is base or not row.is_compared:
        return text
    pairs = zip(metrics, base, strict=True)
    shares = [
        candidate[row.metric] / baseline[row.metric]
        if row.higher_is_better
        else baseline[row.metric] / candidate[row.metric]
        for candidate, baseline in pairs
    ]
    return f"{text} ({statistics.median(shares):.0%})"


def print_table(results: Mapping[str, list[MetricValues]]) -> None:
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version},"
        f" {os.cpu_count()} cores, flushes {os.environ.get('FLUSH_US', '0')} µs longer,"
        f" {len(results['segments'])} rounds\n"
    )
    print(f"| | {' | '.join(results)} |\n|---|{'---|' * len(results)}")
    for row in ROWS:
        cells = [cell(row, metrics, results["segments"]) for metrics in results.values()]
        print(f"| {row.title} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    configure_logging("error", process="bench")  # recovery logs what it truncates
    uvloop.install()
    print_table(run_rounds(arguments.folder, arguments.rounds))


if __name__ == "__main__":
    main()
