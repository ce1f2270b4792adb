"""Kills and restarts each component while both machines receive events and queries continuously.

Events have ids, so every machine needs all the components. At the end each acknowledged event must
be stored exactly once.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import requests

from bench.cluster.environment import COUNT, SHARDS, ClusterEnv, Deployment, run_deployment
from bench.cluster.scale import ClusterScale
from bench.report.measurements import Measurement
from testing.service import Service

_GROUP = "a part is killed and started again (seconds from its start)"
_PAUSE_S = 0.05
_SETTLE_S = 2.0
_TIMEOUT_S = 90.0
_IN_FLIGHT_S = 0.2
"""Requests in flight at the kill are excluded from the results of the outage."""

_NO_RESPONSE = 0


class Component(NamedTuple):
    """How to kill and start a component. `machine` is set if the component is a machine."""

    name: str
    kill: Callable[[], None]
    start: Callable[[], None]
    machine: Service | None = None


class ProbeResult(NamedTuple):
    """One request: start, end and status."""

    started_s: float
    ended_s: float
    status: int


class Probe(threading.Thread):
    """A thread that sends requests to a machine repeatedly and records the responses."""

    def __init__(
        self, machine: Service, kind: str, call: Callable[[requests.Session], int]
    ) -> None:
        super().__init__()
        self.machine = machine
        self.kind = kind
        self.results: list[ProbeResult] = []
        self.stopping = threading.Event()
        self._call = call

    def run(self) -> None:
        """Send requests until `stopping` is set."""
        with Service.session() as session:
            while not self.stopping.wait(_PAUSE_S):
                started_s = time.monotonic()
                try:
                    status = self._call(session)
                except requests.RequestException:
                    status = _NO_RESPONSE
                self.results.append(ProbeResult(started_s, time.monotonic(), status))

    def first_success_s(self, since_s: float) -> float | None:
        """Return the seconds from `since_s` to the 200 of the first request that began after it."""
        ended = (
            one.ended_s for one in self.results[:] if one.started_s >= since_s and one.status == 200
        )
        return next((success_s - since_s for success_s in ended), None)

    def statuses(self, start_s: float, end_s: float) -> set[int]:
        """Return the statuses of requests that began and ended between two points in time."""
        return {
            one.status
            for one in self.results[:]
            if one.started_s >= start_s and one.ended_s <= end_s
        }


class Outage(NamedTuple):
    """One kill: when ingestion and queries recovered, and the responses during the outage."""

    events_s: float
    queries_s: float
    meanwhile: str


class EventSender:
    """Generates event ids and records the acknowledged ones."""

    def __init__(self) -> None:
        self._drawn = itertools.count()
        self.acknowledged: set[int] = set()

    def send(self, url: str, deployment: Deployment, session: requests.Session) -> int:
        """Send one event and return the status."""
        number = next(self._drawn)
        event = {"name": "probe", "eventId": f"probe-{number}", "properties": {"n": number}}
        response = session.post(url, json=event, headers=deployment.headers, timeout=30)
        if response.status_code == 200:
            self.acknowledged.add(number)
        return response.status_code


def measure(env: ClusterEnv, scale: ClusterScale) -> list[Measurement]:
    """Kill every component several times, and compare stored events with acknowledged ones."""
    with run_deployment(env, machines=2, shards=SHARDS, name="killed") as deployment:
        sender = EventSender()
        probes = [*_probes(deployment, sender)]
        for probe in probes:
            probe.start()
        try:
            time.sleep(_SETTLE_S)
            found = {
                component.name: [
                    _kill_and_restart(component, deployment, probes, scale.down_s)
                    for _ in range(scale.kills)
                ]
                for component in _components(env, deployment)
            }
        finally:
            for probe in probes:
                probe.stopping.set()
            for probe in probes:
                probe.join()
        deployment.count_stored()
        stored = deployment.machines[0].counts(
            deployment.website, "events", "properties.n", key=deployment.key
        )
        assert {number: times for number, times in stored.items() if times != 1} == {}
        assert sender.acknowledged - stored.keys() == set()
    checked = f"all {len(sender.acknowledged):,} acknowledged events of all kills are stored once"
    return [
        measurement
        for name, outages in found.items()
        for measurement in _measurements(name, outages, checked)
    ]


def _probes(deployment: Deployment, sender: EventSender) -> Iterator[Probe]:
    for machine in deployment.machines:
        track = f"{machine.url}/track?website_id={deployment.website}"
        custom = f"{machine.url}/v1/query/custom?website_id={deployment.website}"
        body = {"query": COUNT, "startDate": "2020-01-01", "endDate": "2029-12-31"}

        def send(session: requests.Session, url: str = track) -> int:
            return sender.send(url, deployment, session)

        def query(session: requests.Session, url: str = custom) -> int:
            return session.post(url, json=body, headers=deployment.headers, timeout=30).status_code  # noqa: B023 - the same each time

        yield Probe(machine, "events", send)
        yield Probe(machine, "queries", query)


def _components(env: ClusterEnv, deployment: Deployment) -> Sequence[Component]:
    machine, node = deployment.machines[1], env.clickhouse.servers[1]
    postgresql, valkey = env.postgresql.server, env.valkey.server
    return (
        Component("a node of ClickHouse (one of two shards)", node.kill, node.start),
        Component("PostgreSQL", postgresql.kill, postgresql.start),
        Component(env.valkey.program.partition("-")[0].capitalize(), valkey.kill, valkey.start),
        Component("a machine of Headrace", machine.kill, machine.launch, machine),
    )


def _kill_and_restart(
    component: Component, deployment: Deployment, probes: Sequence[Probe], down_s: float
) -> Outage:
    component.kill()
    killed_s = time.monotonic()
    time.sleep(down_s)
    started_s = time.monotonic()
    component.start()
    meanwhile = _describe_outage(component, probes, killed_s + _IN_FLIGHT_S, started_s)
    back = {kind: _all_succeeded_s(probes, kind, started_s) for kind in ("events", "queries")}
    for machine in deployment.machines:
        machine.wait_ready()
    time.sleep(_SETTLE_S)
    return Outage(back["events"], back["queries"], meanwhile)


def _all_succeeded_s(probes: Sequence[Probe], kind: str, since_s: float) -> float:
    """Return the seconds from `since_s` until every machine has responded with 200."""
    while time.monotonic() < since_s + _TIMEOUT_S:
        found = [probe.first_success_s(since_s) for probe in probes if probe.kind == kind]
        answered = [success_s for success_s in found if success_s is not None]
        if len(answered) == len(found):
            return max(answered)
        time.sleep(_PAUSE_S)
    raise AssertionError(f"{kind} are not answered {_TIMEOUT_S} s after the start")


def _describe_outage(
    component: Component, probes: Sequence[Probe], start_s: float, end_s: float
) -> str:
    """Describe the responses of the machines that were not killed."""
    parts: list[str] = []
    for kind in ("events", "queries"):
        probed = [
            one for one in probes if one.kind == kind and one.machine is not component.machine
        ]
        statuses = set[int]().union(*(one.statuses(start_s, end_s) for one in probed))
        parts.append(f"{kind} {' and '.join(map(str, sorted(statuses))) or 'no answer yet'}")
    subject = "on the other machine " if component.machine else ""
    return f"meanwhile {subject}{', '.join(parts)}"


def _measurements(name: str, outages: Sequence[Outage], checked: str) -> list[Measurement]:
    meanwhile = "; ".join(dict.fromkeys(outage.meanwhile for outage in outages))
    return [
        Measurement(
            group=_GROUP,
            title=f"{name}: events are taken in on every machine",
            unit="s",
            runs=tuple(outage.events_s for outage in outages),
            remark=meanwhile,
        ),
        Measurement(
            group=_GROUP,
            title=f"{name}: queries are answered on every machine",
            unit="s",
            runs=tuple(outage.queries_s for outage in outages),
            remark=checked,
        ),
    ]
