"""Each part is killed and started again while both machines are sent events and asked without end.

Events have ids, so every machine needs all the parts. At the end each acknowledged event must be
stored once.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import requests

from bench.cluster_place import COUNT, SHARDS, Group, Place, group
from bench.cluster_scale import ClusterScale
from bench.figures import Figure
from tests.e2e.service import Service

_GROUP = "a part is killed and started again (seconds from its start)"
_PAUSE_S = 0.05
_SETTLED_S = 2.0
_GIVE_UP_S = 90.0
_AT_ONCE_S = 0.2
"""What was under way at the kill is left out of what is told of the time without the part."""

_NO_ANSWER = 0


class Fault(NamedTuple):
    """What kills a part, and what starts it. `machine` is the one that it is, where it is one."""

    name: str
    kill: Callable[[], None]
    start: Callable[[], None]
    machine: Service | None = None


class Seen(NamedTuple):
    """One call: when it began and ended, and its status."""

    began_s: float
    ended_s: float
    status: int


class Probe(threading.Thread):
    """Calls a machine again and again, and notes what it says."""

    def __init__(
        self, machine: Service, kind: str, call: Callable[[requests.Session], int]
    ) -> None:
        super().__init__()
        self.machine = machine
        self.kind = kind
        self.seen: list[Seen] = []
        self.stopping = threading.Event()
        self._call = call

    def run(self) -> None:
        """Call until `stopping` is set."""
        with Service.session() as session:
            while not self.stopping.wait(_PAUSE_S):
                began_s = time.monotonic()
                try:
                    status = self._call(session)
                except requests.RequestException:
                    status = _NO_ANSWER
                self.seen.append(Seen(began_s, time.monotonic(), status))

    def answered_s(self, since_s: float) -> float | None:
        """Return when the first call that began after a moment got its 200, in seconds from it."""
        ended = (
            one.ended_s for one in self.seen[:] if one.began_s >= since_s and one.status == 200
        )
        return next((moment - since_s for moment in ended), None)

    def statuses(self, start_s: float, end_s: float) -> set[int]:
        """Return what calls got that began and ended between two moments."""
        return {
            one.status for one in self.seen[:] if one.began_s >= start_s and one.ended_s <= end_s
        }


class Outage(NamedTuple):
    """One kill: when events are taken and queries answered again, and what went on meanwhile."""

    events_s: float
    queries_s: float
    meanwhile: str


class Numbers:
    """Draws numbers for events, and keeps those that were acknowledged."""

    def __init__(self) -> None:
        self._drawn = itertools.count()
        self.acknowledged: set[int] = set()

    def send(self, url: str, ours: Group, session: requests.Session) -> int:
        """Send one event, and return the status."""
        number = next(self._drawn)
        event = {"name": "probe", "eventId": f"probe-{number}", "properties": {"n": number}}
        reply = session.post(url, json=event, headers=ours.headers, timeout=30)
        if reply.status_code == 200:
            self.acknowledged.add(number)
        return reply.status_code


def measure(where: Place, scale: ClusterScale) -> list[Figure]:
    """Kill every part so many times, and compare what is stored with what was acknowledged."""
    with group(where, machines=2, shards=SHARDS, name="killed") as ours:
        numbers = Numbers()
        probes = [*_probes(ours, numbers)]
        for probe in probes:
            probe.start()
        try:
            time.sleep(_SETTLED_S)
            found = {
                fault.name: [_break(fault, ours, probes, scale.down_s) for _ in range(scale.kills)]
                for fault in _faults(where, ours)
            }
        finally:
            for probe in probes:
                probe.stopping.set()
            for probe in probes:
                probe.join()
        ours.stored()
        stored = ours.machines[0].counts(ours.website, "events", "properties.n", key=ours.key)
        assert {number: times for number, times in stored.items() if times != 1} == {}
        assert numbers.acknowledged - stored.keys() == set()
    checked = f"all {len(numbers.acknowledged):,} acknowledged events of all kills are stored once"
    return [
        figure for name, outages in found.items() for figure in _figures(name, outages, checked)
    ]


def _probes(ours: Group, numbers: Numbers) -> Iterator[Probe]:
    for machine in ours.machines:
        track = f"{machine.url}/track?website_id={ours.website}"
        custom = f"{machine.url}/v1/query/custom?website_id={ours.website}"
        body = {"query": COUNT, "startDate": "2020-01-01", "endDate": "2029-12-31"}

        def send(session: requests.Session, url: str = track) -> int:
            return numbers.send(url, ours, session)

        def ask(session: requests.Session, url: str = custom) -> int:
            return session.post(url, json=body, headers=ours.headers, timeout=30).status_code  # noqa: B023 - the same each time

        yield Probe(machine, "events", send)
        yield Probe(machine, "queries", ask)


def _faults(where: Place, ours: Group) -> Sequence[Fault]:
    machine, node = ours.machines[1], where.clickhouse.servers[1]
    postgresql, shared = where.postgresql.server, where.shared.server
    return (
        Fault("a node of ClickHouse (one of two shards)", node.kill, node.start),
        Fault("PostgreSQL", postgresql.kill, postgresql.start),
        Fault(where.shared.program.partition("-")[0].capitalize(), shared.kill, shared.start),
        Fault("a machine of Headrace", machine.kill, machine.launch, machine),
    )


def _break(fault: Fault, ours: Group, probes: Sequence[Probe], down_s: float) -> Outage:
    fault.kill()
    killed_s = time.monotonic()
    time.sleep(down_s)
    started_s = time.monotonic()
    fault.start()
    meanwhile = _meanwhile(fault, probes, killed_s + _AT_ONCE_S, started_s)
    back = {kind: _answered_s(probes, kind, started_s) for kind in ("events", "queries")}
    for machine in ours.machines:
        machine.wait_ready()
    time.sleep(_SETTLED_S)
    return Outage(back["events"], back["queries"], meanwhile)


def _answered_s(probes: Sequence[Probe], kind: str, since_s: float) -> float:
    """Return when every machine has answered with 200."""
    while time.monotonic() < since_s + _GIVE_UP_S:
        found = [probe.answered_s(since_s) for probe in probes if probe.kind == kind]
        answered = [moment for moment in found if moment is not None]
        if len(answered) == len(found):
            return max(answered)
        time.sleep(_PAUSE_S)
    raise AssertionError(f"{kind} are not answered {_GIVE_UP_S} s after the start")


def _meanwhile(fault: Fault, probes: Sequence[Probe], start_s: float, end_s: float) -> str:
    """Tell what machines answered that were not killed."""
    words: list[str] = []
    for kind in ("events", "queries"):
        asked = [one for one in probes if one.kind == kind and one.machine is not fault.machine]
        statuses = set[int]().union(*(one.statuses(start_s, end_s) for one in asked))
        words.append(f"{kind} {' and '.join(map(str, sorted(statuses))) or 'no answer yet'}")
    where = "on the other machine " if fault.machine else ""
    return f"meanwhile {where}{', '.join(words)}"


def _figures(name: str, outages: Sequence[Outage], checked: str) -> list[Figure]:
    meanwhile = "; ".join(dict.fromkeys(outage.meanwhile for outage in outages))
    return [
        Figure(
            group=_GROUP,
            what=f"{name}: events are taken in on every machine",
            unit="s",
            runs=tuple(outage.events_s for outage in outages),
            remark=meanwhile,
        ),
        Figure(
            group=_GROUP,
            what=f"{name}: queries are answered on every machine",
            unit="s",
            runs=tuple(outage.queries_s for outage in outages),
            remark=checked,
        ),
    ]
