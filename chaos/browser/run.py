"""Runs rounds of faults, and compares what is stored with the calls that returned."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from chaos.browser.faults import FAULTS, World
from chaos.browser.gate import Mode, opened_gate
from chaos.browser.pages import served_shop
from chaos.browser.visitor import Visitor
from testing.browsers.kinds import Kind, opened
from testing.service import Service, running_service

MOST_UNSENT: Final = 250
"""The outbox has room for 500 items; beyond it the tracker drops the oldest, as documented."""

_NEXT_MODES: Final = tuple(mode for mode in Mode if mode is not Mode.SILENT)
"""How the network is after a round. A silent one, which costs half a minute, is a round."""


class Report(Struct, frozen=True):
    """The result of a run. `lost` and `doubled` are ids of events."""

    faults: dict[str, int]
    returned: int
    lost: list[str]
    doubled: list[str]


def run(
    work: Path,
    *,
    rounds: int,
    seed: int,
    keeps_events: bool = True,
    strips_ids: bool = False,
    only: str = "",
    browser: Kind = Kind.CHROMIUM,
) -> Report:
    """Run rounds against a new service in a new browser; all events are sent at the end.

    Every round begins with the network as the last one left it. Without `keeps_events` the tracker
    loses events, with `strips_ids` the network makes the service store some twice.
    """
    random = Random(seed)
    counts: Counter[str] = Counter()
    with running_service(work / "data") as service:
        website = service.website()
        with (
            opened_gate(service.url, strips_ids=strips_ids) as gate,
            served_shop(website, gate.url, keeps_events=keeps_events) as origin,
            opened(browser, work / "profile") as tab,
        ):
            world = World(service, website, gate, Visitor(tab, origin, random), random)
            world.visitor.open_page()
            for _ in range(rounds):
                _run_round(world, only or random.choice(tuple(FAULTS)), counts)
            gate.mode = Mode.FORWARD
            world.visitor.wait_until_all_is_sent()
        service.wait_ready()  # otherwise the query below may get 503
        return _report(counts, world.visitor.returned, _stored(service, website))


def _run_round(world: World, name: str, counts: Counter[str]) -> None:
    FAULTS[name](world)
    counts[name] += 1
    if world.random.random() < 0.6:
        world.gate.mode = world.random.choice(_NEXT_MODES)
    if world.visitor.unsent() > MOST_UNSENT:
        world.gate.mode = Mode.FORWARD
        world.visitor.wait_until_all_is_sent()


def _stored(service: Service, website: str) -> dict[str, int]:
    stored = service.counts(website, "events", "properties.id")
    return {event_id: rows for event_id, rows in stored.items() if event_id}


def _report(faults: Counter[str], returned: list[str], stored: dict[str, int]) -> Report:
    return Report(
        dict(sorted(faults.items())),
        len(returned),
        sorted(set(returned) - stored.keys()),
        sorted(event_id for event_id, rows in stored.items() if rows > 1),
    )
