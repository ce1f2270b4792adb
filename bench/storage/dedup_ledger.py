"""Cost of remembering event ids for seven days: the ledger beside what it was and a store's table.

Run: .venv/bin/python -m bench.storage.dedup_ledger [--ids-a-day N] [--candidate NAME …]
     [--folder DIR] [--json FILE]

Each candidate (`bench/storage/id_candidates.py`) runs in a process of its own. It is filled with a
week of ids as the loader does it and continues with the eighth day, when the oldest ids expire as
new ones arrive. Batches are as small as those of a steady million a day (12 ids a second), of a
thousand ids, and as large as those of a backlog. For each size the bench reports CPU time and bytes
written per id; then the files' size and the memory of the process beyond that of an empty
candidate. At the end the process is killed with SIGKILL: recovery is the time from opening the
files again to the answer of a first look-up, of which half of the ids must be known.
"""

import argparse
import json
import multiprocessing
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, TypeVar

from bench.storage.id_candidates import CANDIDATES, Candidate
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.ingest.load.deduplicate import EVENT_ID_TTL_MS

_T = TypeVar("_T")
_Work = Callable[[str, Path, int, Connection], None]

DAYS = 7
START_MS = 1_700_000_000_000
BATCHES = ((12, 300), (1_000, 60), (40_000, 12))
"""Ids per batch, and the number of measured batches."""

FILL_BATCH_IDS = 50_000
LOOKUP_IDS = 2_048
"""The loader asks for the ids of a chunk of rows at once."""

DIGEST_BYTES = 16
SEED = 14


class BatchCost(NamedTuple):
    """The cost per id for one batch size: CPU time in microseconds, and bytes written."""

    batch: int
    look_up_us: float
    remember_us: float
    written_bytes: float


class IdCost(NamedTuple):
    """What a candidate costs; sizes are in bytes, times per id in microseconds."""

    fill_us: float
    batches: list[BatchCost]
    disk: int
    memory: int


class Recovery(NamedTuple):
    """From opening the files of a killed process to the first answer."""

    wall_s: float
    cpu_s: float


def digests(rng: random.Random, count: int) -> list[bytes]:
    text = rng.randbytes(count * DIGEST_BYTES)
    return [text[at : at + DIGEST_BYTES] for at in range(0, len(text), DIGEST_BYTES)]


def remember(candidate: Candidate, new: list[bytes], received_ms: int) -> None:
    expiries = dict.fromkeys(new, received_ms + EVENT_ID_TTL_MS)
    candidate.remember(expiries, received_ms - MILLISECONDS_PER_DAY)


def timestamps_ms(first_ms: int, count: int, days: float) -> Iterator[int]:
    for number in range(count):
        yield first_ms + int(number * days * MILLISECONDS_PER_DAY / count)


def fill(candidate: Candidate, ids_a_day: int, rng: random.Random) -> None:
    for received_ms in timestamps_ms(START_MS, DAYS * ids_a_day // FILL_BATCH_IDS, DAYS):
        remember(candidate, digests(rng, FILL_BATCH_IDS), received_ms)


def written_bytes() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure_batches(
    candidate: Candidate, size: int, batches: int, ids_a_day: int, rng: random.Random
) -> BatchCost:
    lookup_s = store_s = 0.0
    written = written_bytes()
    first_ms = START_MS + (DAYS + 1) * MILLISECONDS_PER_DAY
    for received_ms in timestamps_ms(first_ms, batches, size * batches / ids_a_day):
        new = digests(rng, size)
        started_s = time.process_time()
        for start in range(0, size, LOOKUP_IDS):
            assert not candidate.known(new[start : start + LOOKUP_IDS])
        looked_up_s = time.process_time()
        remember(candidate, new, received_ms)
        lookup_s += looked_up_s - started_s
        store_s += time.process_time() - looked_up_s
    ids = size * batches
    return BatchCost(
        batch=size,
        look_up_us=lookup_s / ids * 1e6,
        remember_us=store_s / ids * 1e6,
        written_bytes=(written_bytes() - written) / ids,
    )


def measure(name: str, folder: Path, ids_a_day: int, pipe: Connection) -> None:
    """Fill and measure a candidate, send the result, and wait to be killed."""
    rng = random.Random(SEED)
    candidate = CANDIDATES[name](folder)
    before = resident_bytes()
    started_s = time.process_time()
    fill(candidate, ids_a_day, rng)
    fill_us = (time.process_time() - started_s) / (DAYS * ids_a_day) * 1e6
    batches = [measure_batches(candidate, *batch, ids_a_day, rng) for batch in BATCHES]
    disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    pipe.send(IdCost(fill_us, batches, disk, resident_bytes() - before))
    signal.pause()


def recover(name: str, folder: Path, ids_a_day: int, pipe: Connection) -> None:
    """Open the files of a killed process and look up ids of the last day, and as many new ones."""
    rng = random.Random(SEED)
    known = [digests(rng, FILL_BATCH_IDS) for _ in range(DAYS * ids_a_day // FILL_BATCH_IDS)][-1]
    wanted = [*known[: LOOKUP_IDS // 2], *digests(random.Random(SEED + 1), LOOKUP_IDS // 2)]
    wall_s, started_s = time.perf_counter(), time.process_time()
    found = CANDIDATES[name](folder).known(wanted)
    cost = Recovery(time.perf_counter() - wall_s, time.process_time() - started_s)
    assert found.keys() == set(known[: LOOKUP_IDS // 2])
    pipe.send(cost)
    signal.pause()


def in_process(work: _Work, expected: type[_T], name: str, folder: Path, ids_a_day: int) -> _T:
    """Run `work` in a process that ends by SIGKILL, and return what it sends."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(name, folder, ids_a_day, there))
    process.start()
    there.close()
    try:
        received = here.recv()
    finally:
        process.kill()
        process.join()
    assert isinstance(received, expected)
    return received


def print_table(costs: dict[str, IdCost], recoveries: dict[str, Recovery]) -> None:
    sizes = [f"{size:,} ids a batch: look-up, remembering, written" for size, _ in BATCHES]
    print(f"| | {' | '.join(sizes)} | disk | memory | first look-up after kill -9 |")
    print(f"|{'---|' * (len(sizes) + 4)}")
    for name, cost in costs.items():
        batches = " | ".join(
            f"{one.look_up_us:.2f} µs, {one.remember_us:.2f} µs, {one.written_bytes:,.0f} bytes"
            for one in cost.batches
        )
        recovery = recoveries[name]
        print(
            f"| {name} | {batches} | {cost.disk / 2**20:,.0f} MiB | {cost.memory / 2**20:,.0f} MiB "
            f"| {recovery.wall_s:.2f} s (CPU {recovery.cpu_s:.2f} s) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids-a-day", type=int, default=1_000_000, help="half a million or more")
    parser.add_argument("--candidate", action="append", choices=CANDIDATES, help="all by default")
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    costs: dict[str, IdCost] = {}
    recoveries: dict[str, Recovery] = {}
    for name in options.candidate or CANDIDATES:
        with tempfile.TemporaryDirectory(prefix="headrace-ids-", dir=options.folder) as temporary:
            folder, ids_a_day = Path(temporary), options.ids_a_day
            costs[name] = in_process(measure, IdCost, name, folder, ids_a_day)
            recoveries[name] = in_process(recover, Recovery, name, folder, ids_a_day)
        print(f"{name}: filled a week at {costs[name].fill_us:.2f} µs an id", flush=True)
    print_table(costs, recoveries)
    if options.json is not None:
        options.json.write_text(json.dumps({"costs": costs, "recoveries": recoveries}))


if __name__ == "__main__":
    main()
