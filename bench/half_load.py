"""How long senders wait for their 200 at half of the load that the service has to bear.

Run: .venv/bin/python -m bench --only half-load
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from bench.bodies import BATCH, batch_bodies, single_bodies
from bench.figures import Figure, Target
from bench.ingestion import BATCH_CONNECTIONS, SINGLE_CONNECTIONS
from bench.paced import Waits, drive_paced
from bench.scale import Scale
from bench.subject import Subject, subject

P50_TARGET = Target(fixed=6)
P99_TARGET = Target(fixed=25)


class Pace(Struct, frozen=True):
    """A steady load: `rate` requests a second."""

    name: str
    bodies: tuple[bytes, ...]
    rate: int
    connections: int
    events_a_request: int


def paces() -> tuple[Pace, Pace]:
    """Half of 12,000 single events a second, half of 60,000 events a second in batches."""
    return (
        Pace("single events, 6,000 a second", tuple(single_bodies()), 6000, SINGLE_CONNECTIONS, 1),
        Pace("batches of 100, 300 a second", tuple(batch_bodies()), 300, BATCH_CONNECTIONS, BATCH),
    )


def measure(scale: Scale) -> list[Figure]:
    """Measure both kinds of load in turn."""
    found: dict[str, list[Waits]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="paced-", dir=scale.folder) as folder,
        subject(Path(folder)) as ours,
    ):
        for _ in range(scale.runs):
            for pace in paces():
                found.setdefault(pace.name, []).append(send_paced(ours, pace, scale.turn_s))
    return [figure for name, waits in found.items() for figure in _figures(name, waits)]


def send_paced(
    ours: Subject, pace: Pace, seconds: float, *, on_sent: Callable[[], None] = lambda: None
) -> Waits:
    """Send for some seconds; everything must be stored then."""
    bodies = ours.service.data.with_name("bodies")
    bodies.write_bytes(b"\n".join(pace.bodies))
    stored_before = ours.stored()
    waits = drive_paced(
        ours.service.port,
        bodies,
        rate=pace.rate,
        seconds=seconds,
        connections=pace.connections,
        authorization=ours.authorization,
    )
    on_sent()
    stored, sent = ours.stored() - stored_before, waits.requests * pace.events_a_request
    assert stored == sent, f"{sent} events got a 200, {stored} are stored"
    return waits


def _figures(name: str, waits: Sequence[Waits]) -> list[Figure]:
    share = median(one.generator_share for one in waits)
    return [
        Figure(
            group="acknowledgement at half load",
            what=f"{name}: {what}",
            unit="ms",
            runs=tuple(runs),
            target=target,
            remark=f"the client took {share:.0%} of a core",
        )
        for what, runs, target in (
            ("p50", [one.p50_ms for one in waits], P50_TARGET),
            ("p99", [one.p99_ms for one in waits], P99_TARGET),
        )
    ]
