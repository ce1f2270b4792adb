"""Compares two machines with two shards to one machine with one, in turn, with the same bodies.

All processes share the cores of this machine, so the throughput of two machines cannot be twice
that of one. The measurements are CPU time per event, and that no event is lost or duplicated.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.cluster.environment import SHARDS, ClusterEnv, Deployment, run_deployment
from bench.cluster.scale import ClusterScale
from bench.load.bodies import BATCH, batch_bodies
from bench.load.processes import cpu_s, wait_until_idle
from bench.load.wrk import Load, WrkResult, check_wrk, run_wrk
from bench.report.measurements import Measurement

CONNECTIONS = 16
HEADRACE_US = "Headrace: CPU for one event, until it is stored"
CLICKHOUSE_US = "ClickHouse: CPU for one event, merges of the first seconds included"
LOG_BYTES = "log of the machines, for one event"
_GROUP = "taking events in: two machines into two shards beside one into one"
_IDLE_TIMEOUT_S = 10.0
_ONE = "one into one"


class IngestTurn(NamedTuple):
    """What was sent and stored in one turn, and its cost."""

    sent: int
    sent_s: float
    events: int
    stored_s: float
    machines_cpu_s: float
    servers_cpu_s: float
    log_bytes: float


def measure(env: ClusterEnv, scale: ClusterScale) -> list[Measurement]:
    """Measure in rounds."""
    check_wrk()
    bodies = tuple(batch_bodies())
    with (
        run_deployment(env, machines=1, shards=1, name="one") as one,
        run_deployment(env, machines=2, shards=SHARDS, name="two") as two,
    ):
        rounds = [
            (_run_turn(two, bodies, scale.turn_s), _run_turn(one, bodies, scale.turn_s))
            for _ in range(scale.runs)
        ]
    return _measurements([turns[0] for turns in rounds], [turns[1] for turns in rounds])


def _run_turn(deployment: Deployment, bodies: tuple[bytes, ...], seconds: int) -> IngestTurn:
    """Send, wait until everything is stored and merged, and compare the counts.

    At the end wrk closes connections with requests in flight. Only those may be stored in addition.
    """
    load = Load(bodies, CONNECTIONS // len(deployment.machines), seconds)
    stored_before, log_before = deployment.count_stored(), _log_bytes(deployment)
    machines_before, servers_before = cpu_s(deployment.machine_pids), cpu_s(deployment.server_pids)
    started_s = time.perf_counter()
    results = _run_wrk(deployment, load)
    sent_s = time.perf_counter() - started_s
    events = deployment.count_stored() - stored_before
    stored_s = time.perf_counter() - started_s
    machines_cpu_s = cpu_s(deployment.machine_pids) - machines_before
    wait_until_idle(deployment.server_pids, timeout_s=_IDLE_TIMEOUT_S)
    sent = sum(one.requests for one in results) * BATCH
    assert sent <= events <= sent + CONNECTIONS * BATCH, f"{sent} got a 200, {events} are stored"
    return IngestTurn(
        sent,
        sent_s,
        events,
        stored_s,
        machines_cpu_s,
        cpu_s(deployment.server_pids) - servers_before,
        _log_bytes(deployment) - log_before,
    )


def _run_wrk(deployment: Deployment, load: Load) -> list[WrkResult]:
    def send(number: int) -> WrkResult:
        machine = deployment.machines[number]
        folder: Path = machine.data.parent
        url = f"{machine.url}/track?website_id={deployment.website}"
        return run_wrk(url, load, folder, authorization=f"Bearer {deployment.key.secret}")

    with ThreadPoolExecutor(len(deployment.machines)) as generators:
        return list(generators.map(send, range(len(deployment.machines))))


def _log_bytes(deployment: Deployment) -> float:
    name = "headrace_log_appended_bytes_total"
    lines = [
        line
        for machine in deployment.machines
        for line in machine.get("/metrics").text.splitlines()
    ]
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def _measurements(two: Sequence[IngestTurn], one: Sequence[IngestTurn]) -> list[Measurement]:
    events = sum(turn.events for turn in (*two, *one))
    return [
        _measurement(
            f"batches of {BATCH}, acknowledged",
            "events/s",
            [turn.sent / turn.sent_s for turn in two],
            [turn.sent / turn.sent_s for turn in one],
            "all of it on the same cores, where two cannot be faster than one",
        ),
        _measurement(
            f"batches of {BATCH}, until a query counts them all",
            "events/s",
            [turn.events / turn.stored_s for turn in two],
            [turn.events / turn.stored_s for turn in one],
            f"all {events:,} events are stored, none twice",
        ),
        _measurement(
            HEADRACE_US,
            "µs",
            [turn.machines_cpu_s * 1e6 / turn.events for turn in two],
            [turn.machines_cpu_s * 1e6 / turn.events for turn in one],
        ),
        _measurement(
            CLICKHOUSE_US,
            "µs",
            [turn.servers_cpu_s * 1e6 / turn.events for turn in two],
            [turn.servers_cpu_s * 1e6 / turn.events for turn in one],
        ),
        _measurement(
            LOG_BYTES,
            "bytes",
            [turn.log_bytes / turn.events for turn in two],
            [turn.log_bytes / turn.events for turn in one],
        ),
    ]


def _measurement(
    title: str, unit: str, two: Sequence[float], one: Sequence[float], remark: str = ""
) -> Measurement:
    return Measurement(
        group=_GROUP,
        title=title,
        unit=unit,
        runs=tuple(two),
        baseline=_ONE,
        baseline_runs=tuple(one),
        remark=remark,
    )
