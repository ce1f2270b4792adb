"""Measures what reporting an event costs a Python program, and how fast events arrive.

Run: PYTHONPATH=clients/python/src .venv/bin/python -m bench.clients.python_client
     [--folder DIR] [--rounds N]

A real service on a fresh directory takes the same events from the client and from programs that
post each event themselves. "A call" is the median time that one call blocks the program, CPU is the
time of all threads of the program, and events a second are counted until the service has them all.
Values are medians of interleaved rounds.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

import httpx
import requests

from headrace_client import Headrace
from testing.service import Service

EVENTS = 5000
POSTS = 500  # each of them takes as long as a hundred calls of the client
BATCH = 100
PROPERTIES: Mapping[str, object] = {
    "plan": "pro",
    "seats": 3,
    "currency": "EUR",
    "value": 119.5,
    "trial": False,
}
FLUSH_TIMEOUT_S = 300.0


class ClientCost(NamedTuple):
    """One measurement. `call_us` is the median of the calls, `cpu_us` is for each event."""

    call_us: float
    cpu_us: float
    events_per_s: float


class Target(NamedTuple):
    """Where events go, and where outboxes are made."""

    url: str
    key: str
    website: str
    directory: Path


def measure(
    call: Callable[[], object], finish: Callable[[], object], *, calls: int, events: int
) -> ClientCost:
    """Call a function many times, and then wait until its events are stored."""
    durations_s: list[float] = []
    began_s, cpu_s = time.perf_counter(), time.process_time()
    for _ in range(calls):
        before_s = time.perf_counter()
        call()
        durations_s.append(time.perf_counter() - before_s)
    finish()
    elapsed_s = time.perf_counter() - began_s
    spent_s = time.process_time() - cpu_s
    return ClientCost(median(durations_s) * 1e6, spent_s / events * 1e6, events / elapsed_s)


def with_client(
    target: Target, *, synchronous: Literal["normal", "full"], batch: int
) -> ClientCost:
    outbox = target.directory / f"{time.time_ns()}.sqlite"
    with Headrace(
        target.url, target.key, outbox=outbox, website_id=target.website, synchronous=synchronous
    ) as client:

        def flush() -> None:
            assert client.flush(FLUSH_TIMEOUT_S)

        one = {"name": "purchase", "properties": PROPERTIES, "anonymous_id": "anon_4f1c"}
        report: Callable[[], object]
        if batch > 1:
            report = partial(client.track_many, [one] * batch)
        else:
            report = partial(client.track, "purchase", PROPERTIES, anonymous_id="anon_4f1c")
        return measure(report, flush, calls=EVENTS // batch, events=EVENTS)


def event(target: Target) -> dict[str, object]:
    fields = {"name": "purchase", "properties": PROPERTIES, "anonymousId": "anon_4f1c"}
    return {**fields, "websiteId": target.website, "timestamp": time.time_ns() // 1_000_000}


def with_requests(target: Target, *, keeps_connection: bool) -> ClientCost:
    headers = {"Authorization": f"Bearer {target.key}"}
    with requests.Session() as session:
        post = session.post if keeps_connection else requests.post

        def send() -> None:
            post(
                f"{target.url}/track", json=event(target), headers=headers, timeout=10
            ).raise_for_status()

        return measure(send, lambda: None, calls=POSTS, events=POSTS)


def with_httpx(target: Target) -> ClientCost:
    headers = {"Authorization": f"Bearer {target.key}"}
    with httpx.Client(headers=headers) as client:

        def send() -> None:
            client.post(f"{target.url}/track", json=event(target)).raise_for_status()

        return measure(send, lambda: None, calls=POSTS, events=POSTS)


WAYS: Mapping[str, Callable[[Target], ClientCost]] = {
    "`track`": partial(with_client, synchronous="normal", batch=1),
    '`track`, `synchronous="full"`': partial(with_client, synchronous="full", batch=1),
    f"`track_many` of {BATCH}": partial(with_client, synchronous="normal", batch=BATCH),
    "`requests.post` for each event": partial(with_requests, keeps_connection=False),
    "`requests.Session` for each event": partial(with_requests, keeps_connection=True),
    "`httpx.Client` for each event": with_httpx,
}


def print_table(results: Mapping[str, Sequence[ClientCost]]) -> None:
    print("| | a call | CPU an event | events a second, until stored |")
    print("|---|---|---|---|")
    for way, costs in results.items():
        call, cpu, rate = (median(values) for values in zip(*costs, strict=True))
        print(f"| {way} | {call:,.0f} µs | {cpu:,.0f} µs | {rate:,.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="on the disk that is to be measured")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    results: dict[str, list[ClientCost]] = {}
    with tempfile.TemporaryDirectory(prefix="headrace-client-", dir=options.folder) as directory:
        service = Service(Path(directory) / "data").start()
        try:
            key, website = service.master.secret, service.website()
            target = Target(service.url, key, website, Path(directory))
            for _ in range(options.rounds):
                for way, run in WAYS.items():
                    results.setdefault(way, []).append(run(target))
        finally:
            service.kill()
    print_table(results)


if __name__ == "__main__":
    main()
