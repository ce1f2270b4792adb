"""What the event ids of a batch cost the loader, in one process and without a store.

Run: .venv/bin/python -m bench.ingestion.id_cost [--turns N] [--folder DIR]

Batches of a thousand records of a hundred events, half of them with ids that are new, are built
and committed in turn: from the log's records to the Arrow stream, with a ledger on disk. Values are
medians of the thread's CPU time in ns for each event. What the worker, the log and the store do
with an id is not in them; `bench.operation.guarantees` measures the whole way. Sources of another
checkout are measured with its `src` folder in PYTHONPATH.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.load.bodies import batch_bodies
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.ingest.load.batch_reader import BatchLimits, BatchReader
from headrace.ingest.load.build_batch import build_batch
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    EventTuple,
    PackedEventRecord,
    encode_record,
)
from headrace.ports.event_log import LogChunk, LoggedRecord, LogOffset
from headrace.ports.ledger import LogRange

RECORDS = 1_000
START_MS = 1_700_000_000_000
WEBSITE = "3f1c0d52-7c1b-4a53-9b0e-0d1f6c1b2a3e"
RUN = (1 << 62) - 7
"""The event ids look like those of the load generator: a number of a run, and a counter."""


class Cost(NamedTuple):
    """ns of CPU for an event."""

    built: float
    committed: float


class Records:
    """The part of a `LogReader` that a batch needs, over one log."""

    def __init__(self, records: Sequence[LoggedRecord]) -> None:
        self.records = records
        self.range = LogRange(records[0].start, records[-1].end)

    def read(self, log: str, *, after: LogOffset, until: LogOffset, max_bytes: int) -> LogChunk:
        del log, after, until, max_bytes
        return LogChunk(self.records, self.range.end, 0)


def make_records(ids: "count[int] | None", first_ms: int) -> Records:
    """Return the log of a thousand requests, one in each millisecond."""
    bodies: list[list[dict[str, Any]]] = list(map(json.loads, batch_bodies()))
    records: list[LoggedRecord] = []
    end = LogOffset(1, 0)
    for number in range(RECORDS):
        received_ms = first_ms + number
        rows = [_row(event, ids, received_ms) for event in bodies[number % len(bodies)]]
        record = PackedEventRecord(received_ms, UNKNOWN_VISITOR, rows, has_api_key=True)
        payload = encode_record(record)
        start, end = end, LogOffset(1, end.offset + len(payload))
        records.append(LoggedRecord(payload, start, end))
    return Records(records)


def _row(event: Mapping[str, Any], ids: "count[int] | None", received_ms: int) -> EventTuple:
    return (
        WEBSITE,
        received_ms,
        event["name"],
        event["anonymousId"],
        event["sessionId"],
        event["namespace"],
        "",
        f"{RUN}-{next(ids)}" if ids is not None else "",
        event["path"],
        "",
        json.dumps(event["properties"]).encode(),
    )


def load(ledger: SqliteLedger, records: Records, now_ms: int) -> Cost:
    """Build and commit a batch."""
    reader = BatchReader(records, {"worker-0": records.range}, BatchLimits())  # type: ignore[arg-type]  # it only reads
    started_ns = time.thread_time_ns()
    batch = build_batch(reader, identity="bench", find_known=ledger.known_digests)
    built_ns = time.thread_time_ns()
    pending = ledger.begin(batch.ranges)
    begun_ns = time.thread_time_ns()
    ledger.commit(
        pending.batch,
        new_digests=batch.new_digests,
        forget_before_ms=now_ms - MILLISECONDS_PER_DAY,
    )
    committed_ns = time.thread_time_ns()
    (table,) = batch.tables
    return Cost((built_ns - started_ns) / table.rows, (committed_ns - begun_ns) / table.rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    options = parser.parse_args()
    ids, now_ms = count(), START_MS
    costs: dict[bool, list[Cost]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="headrace-ids-", dir=options.folder) as folder:
        ledger = SqliteLedger.open(Path(folder) / "ledger.sqlite")
        for turn in range(options.turns):
            for has_ids in (turn % 2 == 0, turn % 2 == 1):
                records = make_records(ids if has_ids else None, now_ms)
                costs[has_ids].append(load(ledger, records, now_ms))
                now_ms += RECORDS
        ledger.close()
    for name, position in (("building", 0), ("committing", 1)):
        with_ids, without = (median(one[position] for one in costs[has]) for has in (True, False))
        print(f"{name}: {with_ids:,.0f} ns with ids, {without:,.0f} without")


if __name__ == "__main__":
    main()
