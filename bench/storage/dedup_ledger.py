"""Cost of storing event ids: seven days of a million ids a day in the loader's ledger.

Run: .venv/bin/python -m bench.storage.dedup_ledger [--ids-a-day N] [--folder DIR] [--json FILE]

Fills a ledger with a week of ids as the loader does, then continues with the eighth day, when the
oldest ids expire as new ones arrive. Batches are as small as those of a steady million a day (12
ids per second), of a thousand ids, and as large as those of a backlog. For each size it reports the
CPU time and the bytes written to disk per id; then the size of the files and the memory of the
process beyond that with an empty ledger.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.ingest.load.deduplicate import EVENT_ID_TTL_MS
from headrace.ports.ledger import Ledger

DAYS = 7
START_MS = 1_700_000_000_000
BATCHES = ((12, 500), (1_000, 40), (40_000, 3))
"""Ids per batch, and the number of measured batches."""

FILL_BATCH_IDS = 50_000
DIGEST_BYTES = 16


class IdCost(NamedTuple):
    """The cost per id for one batch size: CPU time in microseconds, and bytes written."""

    batch: int
    look_up_us: float
    remember_us: float
    written_bytes: float


def digests(rng: random.Random, count: int) -> list[bytes]:
    text = rng.randbytes(count * DIGEST_BYTES)
    return [text[at : at + DIGEST_BYTES] for at in range(0, len(text), DIGEST_BYTES)]


def store_ids(ledger: Ledger, new: list[bytes], received_ms: int) -> None:
    batch = ledger.begin({}).batch
    seen = dict.fromkeys(new, received_ms + EVENT_ID_TTL_MS)
    ledger.commit(batch, new_digests=seen, forget_before_ms=received_ms - MILLISECONDS_PER_DAY)


def timestamps_ms(first_ms: int, count: int, days: float) -> Iterator[int]:
    for number in range(count):
        yield first_ms + int(number * days * MILLISECONDS_PER_DAY / count)


def fill(ledger: Ledger, ids_a_day: int, rng: random.Random) -> None:
    count = DAYS * ids_a_day // FILL_BATCH_IDS
    for received_ms in timestamps_ms(START_MS, count, DAYS):
        store_ids(ledger, digests(rng, FILL_BATCH_IDS), received_ms)


def written_bytes() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(ledger: Ledger, size: int, batches: int, ids_a_day: int, rng: random.Random) -> IdCost:
    lookup_s = store_s = 0.0
    written = written_bytes()
    first_ms = START_MS + (DAYS + 1) * MILLISECONDS_PER_DAY
    for received_ms in timestamps_ms(first_ms, batches, size * batches / ids_a_day):
        new = digests(rng, size)
        started_s = time.process_time()
        assert not ledger.known_digests(new)
        looked_up_s = time.process_time()
        store_ids(ledger, new, received_ms)
        lookup_s += looked_up_s - started_s
        store_s += time.process_time() - looked_up_s
    ids = size * batches
    return IdCost(
        batch=size,
        look_up_us=lookup_s / ids * 1e6,
        remember_us=store_s / ids * 1e6,
        written_bytes=(written_bytes() - written) / ids,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ids-a-day", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    rng = random.Random(14)
    with tempfile.TemporaryDirectory(prefix="headrace-repeats-", dir=options.folder) as folder:
        ledger = SqliteLedger.open(Path(folder) / "ledger.sqlite")
        before = resident_bytes()
        started_s = time.process_time()
        fill(ledger, options.ids_a_day, rng)
        filled_us = (time.process_time() - started_s) / (DAYS * options.ids_a_day) * 1e6
        costs = [measure(ledger, *batch, options.ids_a_day, rng) for batch in BATCHES]
        memory = resident_bytes() - before
        disk = sum(file.stat().st_size for file in Path(folder).iterdir())
        ledger.close()
    print(f"filled a week in batches of {FILL_BATCH_IDS:,}: {filled_us:.1f} µs an id")
    print("| ids a batch | look-up, µs an id | remembering, µs an id | written, bytes an id |")
    print(f"|{'---|' * 4}")
    for cost in costs:
        print(
            f"| {cost.batch:,} | {cost.look_up_us:.2f} | {cost.remember_us:.2f} "
            f"| {cost.written_bytes:,.0f} |"
        )
    print(f"disk {disk / 2**20:,.0f} MiB, memory {memory / 2**20:,.0f} MiB")
    if options.json is not None:
        totals = {"filled_us": filled_us, "disk": disk, "memory": memory}
        options.json.write_text(json.dumps({**totals, "costs": [c._asdict() for c in costs]}))


if __name__ == "__main__":
    main()
