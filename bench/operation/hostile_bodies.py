"""Measures what a normal sender notices of senders without rights that search expensive bodies.

Run: .venv/bin/python -m bench.operation.hostile_bodies [--seconds S] [--connections N] [--seed N]

One worker. The attackers send random bodies (`testing.hostile_bodies`) of up to 20 MiB before their
encoding: without credentials, with unknown ones, with the public id of a website, with that and one
common Idempotency-Key. The normal sender sends one event at a time, a hundred a second.
"""

import argparse
import http.client
import json
import multiprocessing
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

from testing.hostile_bodies import HostileBody, make_hostile_body
from testing.service import Service

_MAX_BYTES = 19 * 1024 * 1024
_BODIES = 96
_INTERVAL_S = 0.01
_TIMEOUT_S = 120.0
_SLOWEST_SHOWN = 5


class Attack(NamedTuple):
    """What one process of attackers is to do."""

    port: int
    website: str
    connections: int
    seconds: float
    seed: int


class Sent(NamedTuple):
    """One answered request; `status` is 0 for a broken connection."""

    status: int
    seconds: float
    description: str


def main() -> None:
    """Attack a service, and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data", workers=1).start()
        try:
            measure(service, options.seconds, options.connections, options.seed)
        finally:
            service.kill()


def measure(service: Service, seconds: float, connections: int, seed: int) -> None:
    """Measure a normal sender alone, then under attack."""
    website = service.website()
    worker = service.child_pids("worker")
    print_latencies("alone", send_normally(service.port, website, min(seconds, 10.0)))
    context = multiprocessing.get_context("spawn")
    answers: Queue[Sent | None] = context.Queue()
    attack = Attack(service.port, website, connections, seconds, seed)
    attackers = context.Process(target=run_attack, args=(attack, answers))
    attackers.start()
    answers.get()  # the bodies are made
    print_latencies("under attack", send_normally(service.port, website, seconds))
    children = {pid: peak_mebibytes(pid) for pid in (*worker, *_children(worker[0]))}
    sent = list(iter(answers.get, None))
    attackers.join()
    statuses = Counter(one.status for one in sent)
    print(f"attackers: {len(sent)} answers, by status {dict(sorted(statuses.items()))}")
    for one in sorted(sent, key=lambda one: -one.seconds)[:_SLOWEST_SHOWN]:
        print(f"  {one.seconds:6.2f} s  {one.status}  {one.description}")
    worker_peak = children.pop(worker[0])
    print(f"worker: {worker_peak:.0f} MiB at most; its children: {list(children.values())} MiB")
    print(f"restarted: {service.child_pids('worker') != worker}")


def send_normally(port: int, website: str, seconds: float) -> Sequence[Sent]:
    """Send single events for a time, each on time or right after the one before it."""
    body = json.dumps({"name": "normal", "properties": {"plan": "pro"}}).encode()
    headers = {"Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    sent: list[Sent] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sent.append(_post(connection, f"/track?website_id={website}", body, headers, "normal"))
        time.sleep(max(0.0, _INTERVAL_S - sent[-1].seconds))
    connection.close()
    return sent


def print_latencies(name: str, sent: Sequence[Sent]) -> None:
    """Print the quantiles of the latency, and how many were not accepted."""
    times_ms = [1000 * one.seconds for one in sent]
    cuts = quantiles(times_ms, n=100)
    refused = Counter(one.status for one in sent if one.status != 200)
    print(
        f"normal sender {name}: {len(sent)} events, p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, "
        f"max {max(times_ms):.1f} ms, not accepted: {dict(refused)}"
    )


def run_attack(attack: Attack, answers: "Queue[Sent | None]") -> None:
    """Make the bodies, report that with None, and send them until the time is over."""
    rng = random.Random(attack.seed)
    bodies = [make_hostile_body(rng, max_bytes=_MAX_BYTES) for _ in range(_BODIES)]
    answers.put(None)
    end = time.monotonic() + attack.seconds
    threads = [
        threading.Thread(target=_attack, args=(attack, seed, bodies, end, answers))
        for seed in range(attack.connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.put(None)


def _attack(
    attack: Attack,
    seed: int,
    bodies: Sequence[HostileBody],
    end: float,
    answers: "Queue[Sent | None]",
) -> None:
    rng = random.Random(attack.seed * 1_000 + seed)
    connection = http.client.HTTPConnection("127.0.0.1", attack.port, timeout=_TIMEOUT_S)
    credentials: Sequence[tuple[str, Mapping[str, str]]] = (
        ("", {}),
        ("?website_id=web_unknown", {}),
        ("", {"Authorization": "Bearer hr_unknown"}),
        (f"?website_id={attack.website}", {}),
        (f"?website_id={attack.website}", {"Idempotency-Key": "common"}),
    )
    while time.monotonic() < end:
        body = rng.choice(bodies)
        query, headers = rng.choice(credentials)
        path = rng.choice(("/track", "/batch", "/vitals", "/errors", "/")) + query
        sent = {**headers, "Content-Type": "application/json", "Content-Encoding": body.encoding}
        answers.put(_post(connection, path, body.wire, sent, f"{path}: {body.description}"))


def _post(
    connection: http.client.HTTPConnection,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    description: str,
) -> Sent:
    started = time.monotonic()
    try:
        connection.request("POST", path, body, dict(headers))
        response = connection.getresponse()
        response.read()
        status = response.status
    except (OSError, http.client.HTTPException):
        connection.close()
        status = 0
    return Sent(status, time.monotonic() - started, description)


def peak_mebibytes(pid: int) -> float:
    """Return the largest resident memory that a process has had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / 1024)
    return 0.0


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


if __name__ == "__main__":
    main()
