"""Measures recovery after kill -9 with a million events in the log that are not stored.

Run: .venv/bin/python -m bench.operation.recovery [--events N] [--rounds N] [--folder DIR]
[--json FILE]

Each round fills the log of a new service over HTTP while its engine process is stopped (SIGSTOP),
kills all processes at once, starts the service again, and measures the time from that start until
the first event is acknowledged, until /ready is 200, and until a query succeeds. The query must
count every acknowledged event.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import requests
import uvloop

from testing.service import Json, Service, bearer

BATCH = 100
BODIES = 500
CONNECTIONS = 8
POLL_S = 0.02
TIMEOUT_S = 60.0
NO_WATCHDOG = {"HEADRACE_WATCHDOG_TIMEOUT_S": "3600"}
COUNT: Json = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}
TICKS = os.sysconf("SC_CLK_TCK")


class Recovery(NamedTuple):
    """One round, in seconds from the start of the service. `refusals` counts 503s of queries."""

    events: int
    acknowledged_s: float
    ready_s: float
    answered_s: float
    refusals: int
    rows_per_s: float
    engine_cpu_us: float


def bodies(seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return [json.dumps([event(rng) for _ in range(BATCH)]).encode() for _ in range(BODIES)]


def event(rng: random.Random) -> Json:
    return {
        "name": rng.choice(("page_view", "purchase", "signup", "click")),
        "path": f"/page/{rng.randrange(500)}",
        "anonymousId": f"anon_{rng.randrange(50_000):x}",
        "sessionId": f"sess_{rng.randrange(200_000)}",
        "properties": {
            "plan": rng.choice(("free", "pro")),
            "seats": rng.randrange(9),
            "currency": "EUR",
            "value": rng.randrange(20_000) / 100,
        },
    }


async def fill(port: int, website: str, events: int) -> None:
    """Send events until `events` are acknowledged, in batches over several connections."""
    head = (
        f"POST /track?website_id={website} HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    encoded_requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies(1)]
    left = iter(range(events // BATCH))

    async def send() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in left:
            writer.write(encoded_requests[number % BODIES])
            response = await reader.readuntil(b"\r\n\r\n")
            assert response.startswith(b"HTTP/1.1 200 "), response
            length = int(response.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(send() for _ in range(CONNECTIONS)))


class Restart:
    """A service that was just restarted, and the requests sent to it."""

    def __init__(self, service: Service, website: str, events: int) -> None:
        self._service = service
        self._website = website
        self._events = events
        self._headers = bearer(service.master)
        self.refusals = 0

    def can_ingest(self) -> bool:
        url = f"{self._service.url}/track?website_id={self._website}"
        with requests.post(url, json={"name": "after"}, timeout=30) as response:
            return response.status_code == 200

    def is_ready(self) -> bool:
        with requests.get(f"{self._service.url}/ready", timeout=30) as response:
            return response.status_code == 200

    def can_query(self) -> bool:
        today = time.strftime("%Y-%m-%d", time.gmtime())
        body = {
            "query": {
                **COUNT,
                "filters": [{"field": "event_name", "operator": "ne", "value": "after"}],
            },
            "startDate": "2020-01-01",
            "endDate": today,
        }
        url = f"{self._service.url}/v1/query/custom?website_id={self._website}"
        with requests.post(url, json=body, headers=self._headers, timeout=60) as response:
            self.refusals += response.status_code == 503
            if response.status_code != 200:
                return False
            (row,) = response.json()["data"]
            assert row["n"] == self._events, row
            return True


def wait_for(condition: Callable[[], bool], started_s: float) -> float:
    """Wait for a condition and return the seconds since the start of the service."""
    while time.monotonic() < started_s + TIMEOUT_S:
        try:
            if condition():
                return time.monotonic() - started_s
        except requests.ConnectionError:
            pass
        time.sleep(POLL_S)
    raise AssertionError(f"waited in vain for {condition.__name__}")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def recover(service: Service, website: str, events: int) -> Recovery:
    elapsed_s: dict[str, float] = {}
    restart = Restart(service, website, events)
    started_s = time.monotonic()
    service.launch()
    conditions = (restart.can_ingest, restart.is_ready, restart.can_query)

    def record(condition: Callable[[], bool]) -> None:
        elapsed_s[condition.__name__] = wait_for(condition, started_s)

    threads = [threading.Thread(target=record, args=(condition,)) for condition in conditions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(elapsed_s) == len(conditions), service.log_text()
    (engine,) = service.child_pids("engine")
    answered_s = elapsed_s["can_query"]
    return Recovery(
        events=events,
        acknowledged_s=elapsed_s["can_ingest"],
        ready_s=elapsed_s["is_ready"],
        answered_s=answered_s,
        refusals=restart.refusals,
        rows_per_s=events / answered_s,
        engine_cpu_us=cpu_s(engine) / events * 1e6,
    )


def run_round(folder: Path, events: int) -> Recovery:
    service = Service(folder / "data", settings=NO_WATCHDOG).start()
    try:
        website = service.website()
        service.master  # noqa: B018 - created before the kill
        (engine,) = service.child_pids("engine")
        wait_until_website_known(service, website)
        os.kill(engine, signal.SIGSTOP)
        started_s = time.monotonic()
        uvloop.run(fill(service.port, website, events))
        print(f"filled at {events / (time.monotonic() - started_s):,.0f} events/s", flush=True)
        processes = [service.pid, engine, *service.child_pids("worker")]
        service.kill()
        while any(Path(f"/proc/{pid}").exists() for pid in processes):
            time.sleep(POLL_S)  # a dying process keeps the directory locked briefly
        return recover(service, website, events)
    finally:
        service.kill()


def wait_until_website_known(service: Service, website: str) -> None:
    while service.post(f"/track?website_id={website}", []).status_code != 200:
        time.sleep(POLL_S)


def print_table(rounds: Sequence[Recovery]) -> None:
    print("| events | first 200 of ingestion (s) | /ready (s) | first answer (s) ", end="")
    print("| 503s before it | rows/s from the start on | engine CPU a row (µs) |")
    print(f"|{'---|' * 7}")
    middle = Recovery(*(median(values) for values in zip(*rounds, strict=True)))
    for name, one in [*((str(n + 1), one) for n, one in enumerate(rounds)), ("median", middle)]:
        print(
            f"| {one.events:,.0f} ({name}) | {one.acknowledged_s:.2f} | {one.ready_s:.2f} "
            f"| {one.answered_s:.2f} | {one.refusals:.0f} | {one.rows_per_s:,.0f} "
            f"| {one.engine_cpu_us:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rounds to this file too")
    options = parser.parse_args()
    rounds: list[Recovery] = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="headrace-recovery-", dir=options.folder) as folder:
            rounds.append(run_round(Path(folder), options.events))
    print_table(rounds)
    if options.json is not None:
        options.json.write_text(json.dumps([one._asdict() for one in rounds], indent=2))


if __name__ == "__main__":
    main()
