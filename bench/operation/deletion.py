"""Measures what an erasure and a prune cost, and what they do to ingestion meanwhile.

Run: .venv/bin/python -m bench.operation.deletion --folder DIR [--events 10000000] [--rate 200]
[--seconds 20] [--erasures 3] [--no-done]

Generates the data set in DIR where it is missing, and works on a copy of it, which is removed: at
its peak that takes about 350 bytes of disk an event. Requests of one event are sent at a constant
rate, open loop, in windows: quiet ones, and in turn with them one that lasts as long as a visitor
is erased, as long as the rows of a few days are pruned, other ones for each website, and as long as
half of all rows are. Beside the prune of some days, and quiet windows of its own, a query runs all
the time. The ratio of the p99 is that of the medians. `--no-done` does not wait until the
erasures are done, which takes about eight minutes.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from bench.dataset.columns import DAYS, FIRST_DAY_MS
from bench.dataset.generate import Dataset, ensure_dataset
from bench.load.bodies import single_bodies
from bench.load.open_loop import OpenLoopClient, OpenLoopResult
from bench.load.processes import cpu_s
from bench.operation.soak import sizes
from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.model.data_retention import RetentionChange
from headrace.model.tenancy import WebsiteChange, WebsiteId
from testing.service import HEADRACE, Json, Service, clean_environment

CONNECTIONS = 32
FEW_DAYS: Final = 3
"""The rows of so many days expire at most: those of one day of the first website, and so on."""

_CLIENT_START_S = 2.0
_LONGEST_WORK_S = 3600.0
_POLL_S = 1.0
_SETTINGS: Final = {"HEADRACE_QUERY_TIMEOUT_S": "55", "HEADRACE_QUERY_QUEUE_TIMEOUT_S": "55"}
"""A query beside a hundred million rows that are written again is slow, and is to be measured."""
_QUERY: Final[Json] = {
    "table": "events",
    "selects": [{"field": "anonymous_id", "aggregate": "uniq"}],
    "groupBy": ["path"],
}


class Work(NamedTuple):
    """A window in which rows are deleted: latency, and time and engine's CPU of the deletion."""

    load: OpenLoopResult
    seconds: float
    engine_cpu_s: float
    result: Any


class Bench:
    """One service on the data set."""

    def __init__(self, dataset: Dataset, folder: Path, *, rate: float, seconds: float) -> None:
        self.data = Path(dataset.data)
        self.service = Service(self.data, settings=_SETTINGS).start()
        self.websites = dataset.websites
        self._manager = f"Bearer {dataset.key}"
        self._sender = f"Bearer {self.service.key('track:events', home=self.websites[0]).secret}"
        self._bodies = folder / "bodies"
        self._bodies.write_bytes(b"\n".join(single_bodies()))
        self._rate = rate
        self._seconds = seconds

    def load(self) -> OpenLoopResult:
        """Send for one window."""
        return self._start_client(self._seconds).wait()

    def load_during(self, work: Callable[[], Any]) -> Work:
        """Send as long as rows are deleted."""
        (engine,) = self.service.child_pids("engine")
        client = self._start_client(_LONGEST_WORK_S)
        time.sleep(_CLIENT_START_S)
        before_s, started_s = cpu_s([engine]), time.perf_counter()
        result = work()
        spent_s, engine_cpu_s = time.perf_counter() - started_s, cpu_s([engine]) - before_s
        return Work(client.stop(), spent_s, engine_cpu_s, result)

    def _start_client(self, seconds: float) -> OpenLoopClient:
        return OpenLoopClient(
            self.service.port,
            self._bodies,
            rate=self._rate,
            seconds=seconds,
            connections=CONNECTIONS,
            authorization=self._sender,
        )

    @contextmanager
    def querying(self) -> Generator[list[float]]:
        """Query the largest website all the time; the list gets the duration of each query."""
        durations_s: list[float] = []
        is_over = threading.Event()

        def query() -> None:
            while not is_over.is_set():
                started_s = time.perf_counter()
                self.service.answer(self.websites[0], _QUERY, start="2026-03-01")
                durations_s.append(time.perf_counter() - started_s)

        thread = threading.Thread(target=query)
        thread.start()
        try:
            yield durations_s
        finally:
            is_over.set()
            thread.join()

    def visitors(self, count: int) -> list[str]:
        """Return visitors with many events."""
        query: Json = {
            "table": "events",
            "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
            "groupBy": ["anonymous_id"],
        }
        order = [{"field": "n", "direction": "desc"}]
        rows = self.service.answer(self.websites[0], query, limit=count, orderBy=order)
        return [row["anonymous_id"] for row in rows]

    def erase(self, visitor: str) -> Any:  # noqa: ANN401 - the receipt
        """Erase a visitor; return when no answer has the rows, also where the call returns before.

        The call waits up to five minutes.
        """
        headers = {"Authorization": self._manager}
        response = self.service.http.post(
            f"{self.service.url}/v1/erasures?website_id={self.websites[0]}",
            json={"anonymousId": visitor},
            headers=headers,
            timeout=_LONGEST_WORK_S,
        )
        assert response.status_code == 202, response.text
        receipt = response.json()["data"]
        while receipt["answersClean"] is None:
            time.sleep(_POLL_S)
            response = self.service.get(
                f"/v1/erasures/{receipt['id']}?website_id={self.websites[0]}", headers=headers
            )
            assert response.status_code == 200, response.text
            receipt = response.json()["data"]
        return receipt

    def until_done(self) -> float:
        """Return the seconds until all erasures are done."""
        started_s = time.perf_counter()
        while any(one["state"] != "done" for one in self.service.command("erasures", "list")):
            time.sleep(5)
        return time.perf_counter() - started_s

    def expire(self, days: Callable[[int], int]) -> None:
        """Let the first days of each website expire; `days` has their number for its index."""
        age_days = (time.time_ns() // 1_000_000 - FIRST_DAY_MS) // MILLISECONDS_PER_DAY
        for index, website in enumerate(self.websites):
            retention = RetentionChange(days=age_days - days(index))
            change = WebsiteChange(retention=retention)
            self.service.directory.update_website(WebsiteId(website), change)

    def prune(self) -> int:
        """Delete all expired rows; return their number."""
        done = subprocess.run(
            [HEADRACE, "prune", "--data", str(self.data), "--json"],
            env=clean_environment(),
            stdout=subprocess.PIPE,
            check=True,
        )
        return sum(pruned["rows"] for pruned in msgspec.json.decode(done.stdout))

    def disk_mb(self) -> float:
        """Return the bytes of the data directory."""
        return sum(sizes(self.data)) / 1e6


def report(name: str, work: Work, quiet: list[OpenLoopResult]) -> None:
    """Print one line."""
    quiet_ms, p99_ms = statistics.median(one.p99_ms for one in quiet), work.load.p99_ms
    print(
        f"{name}: {work.seconds:.1f} s, {work.engine_cpu_s:.1f} s of CPU in the engine; ingestion "
        f"p99 {p99_ms:.2f} ms, quiet {quiet_ms:.2f} ms, ratio {p99_ms / quiet_ms:.2f}",
        flush=True,
    )


def measure_erasures(bench: Bench, count: int) -> None:
    """Measure erasures in turn with quiet windows, and print."""
    quiet = [bench.load()]
    erased: list[Work] = []
    for visitor in bench.visitors(count):
        work = bench.load_during(partial(bench.erase, visitor))
        erased.append(work)
        quiet.append(bench.load())
        report(f"erasure of {work.result['rows']['events']} events", work, quiet)
    ratio = statistics.median(one.load.p99_ms for one in erased) / statistics.median(
        one.p99_ms for one in quiet
    )
    print(f"erasures: p99 ratio of medians {ratio:.2f}", flush=True)


def measure_prunes(bench: Bench) -> None:
    """Measure a prune of a few days beside queries, and one of half of all rows, and print."""
    with bench.querying() as before_s:
        quiet = [bench.load()]
    bench.expire(lambda index: 1 + index % FEW_DAYS)
    with bench.querying() as meanwhile_s:
        work = bench.load_during(bench.prune)
    with bench.querying() as after_s:
        quiet.append(bench.load())
    report(f"prune of {work.result:,} rows", work, quiet)
    quiet_s = statistics.median([*before_s, *after_s])
    print(
        f"a query meanwhile: median {statistics.median(meanwhile_s) * 1e3:.0f} ms, at most "
        f"{max(meanwhile_s) * 1e3:.0f} ms, quiet {quiet_s * 1e3:.0f} ms",
        flush=True,
    )
    bench.expire(lambda _index: DAYS // 2)
    quiet = [bench.load()]
    work = bench.load_during(bench.prune)
    quiet.append(bench.load())
    report(f"prune of half, {work.result:,} rows", work, quiet)


def main() -> None:
    """Measure on a copy of the data set."""
    parser = argparse.ArgumentParser(description="Costs of erasures and prunes.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of one window")
    parser.add_argument("--erasures", type=int, default=3)
    parser.add_argument("--no-done", action="store_true")
    options = parser.parse_args()
    original = ensure_dataset(options.folder, events=options.events)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="deletion-") as temporary:
        folder = Path(temporary)
        shutil.copytree(original.data, folder / "data", symlinks=True)
        os.sync()  # else the quiet windows wait for the copy to be written
        dataset = msgspec.structs.replace(original, data=str(folder / "data"))
        bench = Bench(dataset, folder, rate=options.rate, seconds=options.seconds)
        try:
            print(f"disk before {bench.disk_mb():,.0f} MB", flush=True)
            measure_erasures(bench, options.erasures)
            if not options.no_done:
                print(f"all of them done after another {bench.until_done():.0f} s", flush=True)
            measure_prunes(bench)
            print(f"disk after {bench.disk_mb():,.0f} MB, with the replaced parts", flush=True)
        finally:
            bench.service.kill()


if __name__ == "__main__":
    main()
