"""Measures a start after a power failure that left the rollups of all parts truncated.

Run: .venv/bin/python -m bench.operation.rollup_rebuild --folder DIR [--events N]

The service starts on a copy of the data set. A question about sessions, which the rollup answers
when it is whole, runs until the rollup is rebuilt and some times afterwards; its rows must always
be the same, up to the last bit of an average.
"""

import argparse
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.dataset.generate import Dataset, ensure_dataset
from bench.queries.latency import MONTH, NO_CACHE, HttpClient, QueryResult
from bench.queries.query_list import BenchmarkQuery
from headrace.ports.store import Rows
from testing.service import Service

POLL_S = 0.02
WHOLE_RUNS = 9
REBUILD_TIMEOUT_S = 1_800.0
QUERY = BenchmarkQuery(
    "average duration of sessions by country",
    {
        "table": "sessions",
        "selects": [{"field": "duration", "aggregate": "avg", "alias": "n"}],
        "groupBy": ["country"],
    },
    ("country", "n"),
    "",  # compared with itself alone
)


class Rebuild(NamedTuple):
    """Seconds since the start of the service, and medians of a query's milliseconds."""

    parts: int
    ready_s: float
    first_answer_s: float
    rebuilt_s: float
    without_rollup_ms: float
    longest_ms: float
    with_rollup_ms: float


@contextmanager
def copied(dataset: Dataset) -> Generator[Dataset]:
    """Return a copy of a data set; it is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="rebuild-", dir=Path(dataset.data).parent))
    try:
        subprocess.run(["cp", "-a", dataset.data, str(folder / "data")], check=True)
        yield msgspec.structs.replace(dataset, data=str(folder / "data"))
    finally:
        shutil.rmtree(folder)


def truncate_rollups(data: Path) -> int:
    """Empty the rollup of every part, as file systems do with what was not flushed."""
    files = list((data / "store").glob("store/*/*/all_*/visits.proj/data.bin"))
    for file in files:
        os.truncate(file, 0)
    return len(files)


def measure(dataset: Dataset) -> Rebuild:
    """Start on truncated rollups, and query until they are rebuilt."""
    parts = truncate_rollups(Path(dataset.data))
    assert parts, "the data set has no rollups"
    service = Service(Path(dataset.data), settings=NO_CACHE)
    started_s = time.monotonic()
    try:
        service.start()
        ready_s = time.monotonic() - started_s
        client = HttpClient(service, dataset)
        without = [client.run_query(QUERY, MONTH)]
        first_answer_s = time.monotonic() - started_s
        while is_rebuilding(service):
            assert time.monotonic() - started_s < REBUILD_TIMEOUT_S, service.log_text()[-2000:]
            without.append(client.run_query(QUERY, MONTH))
            time.sleep(POLL_S)
        rebuilt_s = time.monotonic() - started_s
        whole = [client.run_query(QUERY, MONTH) for _ in range(WHOLE_RUNS)]
        assert all(are_equal(one.rows, whole[0].rows) for one in [*without, *whole])
        assert service.stop() == 0
    finally:
        service.kill()
    return Rebuild(
        parts=parts,
        ready_s=ready_s,
        first_answer_s=first_answer_s,
        rebuilt_s=rebuilt_s,
        without_rollup_ms=median_ms(without),
        longest_ms=max(one.ms for one in without),
        with_rollup_ms=median_ms(whole),
    )


def are_equal(rows: Rows, others: Rows) -> bool:
    """Compare rows. An average may differ in its last bit: the rollup adds in another order."""
    if [row[:-1] for row in rows] != [row[:-1] for row in others]:
        return False
    return all(
        math.isclose(row[-1], other[-1], rel_tol=1e-14)
        for row, other in zip(rows, others, strict=True)
    )


def median_ms(results: list[QueryResult]) -> float:
    """Return the median latency."""
    return median(one.ms for one in results)


def is_rebuilding(service: Service) -> bool:
    """Return whether `/ready` reports it."""
    response = service.get("/ready")
    assert response.status_code == 200, response.text
    return bool(response.json()["parts"]["engine"] == "rebuilding")


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where data sets are kept")
    parser.add_argument("--events", type=int, default=10_000_000)
    options = parser.parse_args()
    with copied(ensure_dataset(options.folder, events=options.events)) as dataset:
        result = measure(dataset)
    print(f"{options.events:,} events, the rollups of {result.parts} parts truncated")
    print(f"ready after {result.ready_s:.1f} s, first answer after {result.first_answer_s:.1f} s")
    print(f"rebuilt after {result.rebuilt_s:.1f} s")
    print(
        f"{QUERY.name}: {result.without_rollup_ms:.0f} ms meanwhile "
        f"(longest {result.longest_ms:.0f}), {result.with_rollup_ms:.0f} afterwards"
    )


if __name__ == "__main__":
    main()
