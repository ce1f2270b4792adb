"""Measures what an erasure and a prune cost, and what they do to ingestion meanwhile.

Run: .venv/bin/python -m bench.operation.deletion --folder DIR [--events 10000000] [--rate 200]
[--seconds 20] [--no-done]

Generates the data set in a temporary folder below DIR, which takes about 250 bytes of disk an event
at its peak, and removes it. Requests of one event are sent at a constant rate, open loop, in
windows: quiet ones, and in turn with each of them one in which one visitor is erased, and at the
end one that lasts as long as half of all rows are pruned. The ratio of the p99 is that of the
medians. `--no-done` does not wait until the erasures are done, which takes about eight minutes.
"""

import argparse
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.dataset.columns import DAYS, FIRST_DAY_MS
from bench.dataset.generate import Dataset, ensure_dataset
from bench.load.bodies import single_bodies
from bench.load.open_loop import OpenLoopResult, run_open_loop
from bench.load.processes import cpu_s
from bench.operation.soak import sizes
from headrace.base.clock import MILLISECONDS_PER_DAY
from testing.service import HEADRACE, Json, Service, clean_environment

ERASURES = 3
CONNECTIONS = 32
_HALF = DAYS // 2


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
        self.service = Service(self.data).start()
        self.website = dataset.websites[0]
        self._manager = f"Bearer {dataset.key}"
        self._sender = f"Bearer {self.service.key('track:events', home=self.website).secret}"
        self._bodies = folder / "bodies"
        self._bodies.write_bytes(b"\n".join(single_bodies()))
        self._rate = rate
        self._seconds = seconds

    def load(self, seconds: float | None = None) -> OpenLoopResult:
        """Send for one window."""
        return run_open_loop(
            self.service.port,
            self._bodies,
            rate=self._rate,
            seconds=seconds or self._seconds,
            connections=CONNECTIONS,
            authorization=self._sender,
        )

    def load_during(self, work: Callable[[], Any], seconds: float | None = None) -> Work:
        """Send while rows are deleted; the window lasts at least as long as usual."""
        (engine,) = self.service.child_pids("engine")
        loads: list[OpenLoopResult] = []
        sender = threading.Thread(target=lambda: loads.append(self.load(seconds)))
        sender.start()
        time.sleep(1)
        before_s, started_s = cpu_s([engine]), time.perf_counter()
        result = work()
        spent_s, engine_cpu_s = time.perf_counter() - started_s, cpu_s([engine]) - before_s
        sender.join()
        return Work(loads[0], spent_s, engine_cpu_s, result)

    def visitors(self) -> list[str]:
        """Return visitors with many events."""
        query: Json = {
            "table": "events",
            "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
            "groupBy": ["anonymous_id"],
        }
        order = [{"field": "n", "direction": "desc"}]
        rows = self.service.answer(self.website, query, limit=ERASURES, orderBy=order)
        return [row["anonymous_id"] for row in rows]

    def erase(self, visitor: str) -> Any:  # noqa: ANN401 - the receipt
        """Erase a visitor; return when no answer has the rows."""
        response = self.service.post(
            f"/v1/erasures?website_id={self.website}",
            {"anonymousId": visitor},
            headers={"Authorization": self._manager},
        )
        assert response.status_code == 202, response.text
        return response.json()["data"]

    def until_done(self) -> float:
        """Return the seconds until all erasures are done."""
        started_s = time.perf_counter()
        while any(one["state"] != "done" for one in self.service.command("erasures", "list")):
            time.sleep(5)
        return time.perf_counter() - started_s

    def expire_half(self) -> None:
        """Let half of the days of all websites expire."""
        begin = datetime.fromtimestamp(FIRST_DAY_MS / 1000 + _HALF * 86_400, UTC)
        kept = (time.time() * 1000 - begin.timestamp() * 1000) // MILLISECONDS_PER_DAY
        for website in self.service.command("website", "list"):
            self.service.command(
                "website", "update", website["id"], "--retain-days", str(int(kept))
            )

    def prune(self) -> None:
        """Delete all expired rows."""
        subprocess.run(
            [HEADRACE, "prune", "--data", str(self.data)],
            env=clean_environment(),
            stdout=subprocess.DEVNULL,
            check=True,
        )

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


def measure(bench: Bench, *, waits: bool, prune_s: float) -> None:
    """Measure and print."""
    print(f"disk before {bench.disk_mb():,.0f} MB", flush=True)
    quiet = [bench.load()]
    erased: list[Work] = []
    for visitor in bench.visitors():
        work = bench.load_during(partial(bench.erase, visitor))
        erased.append(work)
        quiet.append(bench.load())
        report(f"erasure of {work.result['rows']['events']} events", work, quiet)
    ratio = statistics.median(one.load.p99_ms for one in erased) / statistics.median(
        one.p99_ms for one in quiet
    )
    print(f"erasures: p99 ratio of medians {ratio:.2f}", flush=True)
    if waits:
        print(f"all of them done after another {bench.until_done():.0f} s", flush=True)
    bench.expire_half()
    quiet = [bench.load()]
    work = bench.load_during(bench.prune, prune_s)
    quiet.append(bench.load())
    report("prune of half", work, quiet)
    print(f"disk after {bench.disk_mb():,.0f} MB, with the replaced parts", flush=True)


def main() -> None:
    """Measure on a fresh data set."""
    parser = argparse.ArgumentParser(description="Costs of erasures and prunes.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of one window")
    parser.add_argument("--no-done", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="deletion-") as temporary:
        folder = Path(temporary)
        dataset = ensure_dataset(folder, events=options.events)
        bench = Bench(dataset, folder, rate=options.rate, seconds=options.seconds)
        try:
            prune_s = max(options.seconds, options.events / 100_000)
            measure(bench, waits=not options.no_done, prune_s=prune_s)
        finally:
            bench.service.kill()


if __name__ == "__main__":
    main()
