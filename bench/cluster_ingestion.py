"""Two machines into two shards beside one into one, in turn, with the same bodies.

All of it shares the cores of this machine, so the events a second of two cannot be twice those of
one: what counts is the processor time of an event, and that nothing is lost or doubled.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.bodies import BATCH, batch_bodies
from bench.cluster_place import SHARDS, Group, Place, group
from bench.cluster_scale import ClusterScale
from bench.figures import Figure
from bench.processes import cpu_s, wait_until_quiet
from bench.wrk import Driven, Load, check_wrk, drive

CONNECTIONS = 16
HEADRACE_US = "Headrace: CPU for one event, until it is stored"
CLICKHOUSE_US = "ClickHouse: CPU for one event, merges of the first seconds included"
LOG_BYTES = "log of the machines, for one event"
_GROUP = "taking events in: two machines into two shards beside one into one"
_QUIET_TIMEOUT_S = 10.0
_ONE = "one into one"


class Turn(NamedTuple):
    """What was sent and stored in one turn, and what it cost."""

    sent: int
    sent_s: float
    events: int
    stored_s: float
    machines_cpu_s: float
    servers_cpu_s: float
    log_bytes: float


def measure(where: Place, scale: ClusterScale) -> list[Figure]:
    """Measure in rounds."""
    check_wrk()
    bodies = tuple(batch_bodies())
    with (
        group(where, machines=1, shards=1, name="one") as one,
        group(where, machines=2, shards=SHARDS, name="two") as two,
    ):
        rounds = [
            (_play(two, bodies, scale.turn_s), _play(one, bodies, scale.turn_s))
            for _ in range(scale.runs)
        ]
    return _figures([turns[0] for turns in rounds], [turns[1] for turns in rounds])


def _play(ours: Group, bodies: tuple[bytes, ...], seconds: int) -> Turn:
    """Send, wait until everything is stored and merged, and compare the counts.

    At its end wrk hangs up on what is under way; that may be stored too, and nothing else.
    """
    load = Load(bodies, CONNECTIONS // len(ours.machines), seconds)
    stored_before, log_before = ours.stored(), _log_bytes(ours)
    machines_before, servers_before = cpu_s(ours.machine_pids), cpu_s(ours.server_pids)
    began_s = time.perf_counter()
    driven = _drive(ours, load)
    sent_s = time.perf_counter() - began_s
    events = ours.stored() - stored_before
    stored_s = time.perf_counter() - began_s
    machines_cpu_s = cpu_s(ours.machine_pids) - machines_before
    wait_until_quiet(ours.server_pids, timeout_s=_QUIET_TIMEOUT_S)
    sent = sum(one.requests for one in driven) * BATCH
    assert sent <= events <= sent + CONNECTIONS * BATCH, f"{sent} got a 200, {events} are stored"
    return Turn(
        sent,
        sent_s,
        events,
        stored_s,
        machines_cpu_s,
        cpu_s(ours.server_pids) - servers_before,
        _log_bytes(ours) - log_before,
    )


def _drive(ours: Group, load: Load) -> list[Driven]:
    def send(number: int) -> Driven:
        machine = ours.machines[number]
        folder: Path = machine.data.parent
        url = f"{machine.url}/track?website_id={ours.website}"
        return drive(url, load, folder, authorization=f"Bearer {ours.key.secret}")

    with ThreadPoolExecutor(len(ours.machines)) as generators:
        return list(generators.map(send, range(len(ours.machines))))


def _log_bytes(ours: Group) -> float:
    name = "headrace_log_appended_bytes_total"
    lines = [
        line for machine in ours.machines for line in machine.get("/metrics").text.splitlines()
    ]
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def _figures(two: Sequence[Turn], one: Sequence[Turn]) -> list[Figure]:
    events = sum(turn.events for turn in (*two, *one))
    return [
        _figure(
            f"batches of {BATCH}, acknowledged",
            "events/s",
            [turn.sent / turn.sent_s for turn in two],
            [turn.sent / turn.sent_s for turn in one],
            "all of it on the same cores, where two cannot be faster than one",
        ),
        _figure(
            f"batches of {BATCH}, until a query counts them all",
            "events/s",
            [turn.events / turn.stored_s for turn in two],
            [turn.events / turn.stored_s for turn in one],
            f"all {events:,} events are stored, none twice",
        ),
        _figure(
            HEADRACE_US,
            "µs",
            [turn.machines_cpu_s * 1e6 / turn.events for turn in two],
            [turn.machines_cpu_s * 1e6 / turn.events for turn in one],
        ),
        _figure(
            CLICKHOUSE_US,
            "µs",
            [turn.servers_cpu_s * 1e6 / turn.events for turn in two],
            [turn.servers_cpu_s * 1e6 / turn.events for turn in one],
        ),
        _figure(
            LOG_BYTES,
            "bytes",
            [turn.log_bytes / turn.events for turn in two],
            [turn.log_bytes / turn.events for turn in one],
        ),
    ]


def _figure(
    what: str, unit: str, two: Sequence[float], one: Sequence[float], remark: str = ""
) -> Figure:
    return Figure(
        group=_GROUP,
        what=what,
        unit=unit,
        runs=tuple(two),
        yardstick=_ONE,
        yardstick_runs=tuple(one),
        remark=remark,
    )
