"""Runs a constant load with queries and reports whether memory, handles, parts and disk grow.

Run: .venv/bin/python -m bench.operation.soak --minutes 60 --rate 500
Memory is flat if its growth in an hour, without the first quarter, is noise of a few MiB.
"""

import argparse
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import linear_regression, median
from typing import NamedTuple

from testing.service import Json, Service, bearer

BATCH = 50
SAMPLE_EVERY_S = 5.0
QUERY_EVERY_S = 1.0
PATHS = tuple(f"/page/{number}" for number in range(500))
QUERIES: tuple[Json, ...] = (
    {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]},
    {
        "table": "events",
        "selects": [{"field": "anonymous_id", "aggregate": "uniq"}],
        "groupBy": ["path"],
    },
    {
        "table": "sessions",
        "selects": [{"field": "duration", "aggregate": "avg"}],
        "groupBy": ["country"],
    },
)


class ResourceSample(NamedTuple):
    """One sample of the service's resources. Memory in MiB, disk in bytes."""

    engine_memory: float
    worker_memory: float
    handles: int
    parts: int
    log_bytes: int
    events: int
    store_bytes: int


class Counts:
    """The counts of the load so far."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.queries = 0
        self.failures = 0


def events(rng: random.Random) -> list[Json]:
    return [
        {
            "name": "page_view",
            "path": rng.choice(PATHS),
            "anonymousId": f"anon_{rng.randrange(5000)}",
            "sessionId": f"sess_{rng.randrange(20_000)}",
            "properties": {"plan": rng.choice(("free", "pro")), "seats": rng.randrange(9)},
        }
        for _ in range(BATCH)
    ]


def send(service: Service, website: str, rate: float, counts: Counts, end_s: float) -> None:
    rng = random.Random(1)
    http = service.session()
    scheduled_s = time.monotonic()
    while scheduled_s < end_s:
        response = http.post(
            f"{service.url}/track?website_id={website}", json=events(rng), timeout=30
        )
        if response.status_code == 200:
            counts.acknowledged += BATCH
        else:
            counts.failures += 1
        scheduled_s += BATCH / rate
        time.sleep(max(0.0, scheduled_s - time.monotonic()))


def run_queries(service: Service, website: str, counts: Counts, end_s: float) -> None:
    http = service.session()
    headers = bearer(service.master)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    while time.monotonic() < end_s:
        for query in QUERIES:
            body = {"query": query, "startDate": today, "endDate": today}
            url = f"{service.url}/v1/query/custom?website_id={website}"
            response = http.post(url, json=body, headers=headers, timeout=30)
            counts.queries += 1
            counts.failures += response.status_code != 200
            time.sleep(QUERY_EVERY_S)


def memory_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def sizes(directory: Path) -> Iterator[int]:
    for folder, _, names in os.walk(directory):  # skips directories that a merge removes meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                yield Path(folder, name).lstat().st_size


def part_count(directory: Path) -> int:
    return sum(Path(folder).name.startswith("all_") for folder, _, _ in os.walk(directory))


def sample(service: Service, counts: Counts) -> ResourceSample:
    (engine,), (worker,) = service.child_pids("engine"), service.child_pids("worker")
    handles = sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in (engine, worker))
    return ResourceSample(
        engine_memory=memory_mib(engine),
        worker_memory=memory_mib(worker),
        handles=handles,
        parts=part_count(service.data / "store" / "store"),
        log_bytes=sum(sizes(service.data / "log")),
        events=counts.acknowledged,
        store_bytes=sum(sizes(service.data / "store")),
    )


def growth_per_hour(values: list[float]) -> float:
    """Return the growth of values that were sampled every `SAMPLE_EVERY_S`."""
    times_s = [index * SAMPLE_EVERY_S for index in range(len(values))]
    return linear_regression(times_s, values).slope * 3_600


def report(samples: list[ResourceSample], counts: Counts) -> None:
    quarter = len(samples) // 4
    print(f"acknowledged {counts.acknowledged}, queries {counts.queries}, failed {counts.failures}")
    columns = ("1", "2", "3", "4", "+ an hour")
    print(f"{'median of each quarter':24}" + "".join(f"{column:>12}" for column in columns))
    for index, name in enumerate(ResourceSample._fields):
        quarters = (samples[n * quarter : (n + 1) * quarter] for n in range(4))
        values = [median(one[index] for one in part) for part in quarters]
        values.append(growth_per_hour([one[index] for one in samples[quarter:]]))
        print(f"{name:24}" + "".join(f"{value:12.0f}" for value in values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=500.0, help="events a second")
    options = parser.parse_args()
    end_s = time.monotonic() + options.minutes * 60
    counts, samples = Counts(), list[ResourceSample]()
    with tempfile.TemporaryDirectory(prefix="headrace-soak-") as directory:
        service = Service(Path(directory) / "data").start()
        try:
            website = service.website()
            threads = [
                threading.Thread(target=send, args=(service, website, options.rate, counts, end_s)),
                threading.Thread(target=run_queries, args=(service, website, counts, end_s)),
            ]
            for thread in threads:
                thread.start()
            while time.monotonic() < end_s:
                samples.append(sample(service, counts))
                time.sleep(SAMPLE_EVERY_S)
            for thread in threads:
                thread.join()
            report(samples, counts)
            stored = service.answer(website, QUERIES[0])[0]["n"]
            print(f"stored {stored}, lost or doubled {stored - counts.acknowledged}")
        finally:
            service.kill()


if __name__ == "__main__":
    main()
