"""The faults of a run: each is one round, in which the visitor tracks events."""

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from random import Random
from typing import Final

from msgspec import Struct

from chaos.browser.gate import Gate, Mode
from chaos.browser.visitor import Visitor
from testing.service import BOTS_TOO, Service, wait_until

LONGEST_PAUSE_S: Final = 0.8
"""The tracker sends half a second after an event: pauses end before, while and after it sends."""


class World(Struct):
    """What faults act on."""

    service: Service
    website: str
    gate: Gate
    visitor: Visitor
    random: Random

    def pause(self) -> None:
        """Wait for as long as chance decides."""
        time.sleep(self.random.uniform(0, LONGEST_PAUSE_S))

    def is_stored(self, event_id: str) -> bool:
        """Return whether an event is stored; a service that answers 503 now does not tell."""
        query = {
            "table": "events",
            "selects": [{"field": "*", "aggregate": "count", "alias": "n"}],
            "filters": [BOTS_TOO, {"field": "properties.id", "operator": "eq", "value": event_id}],
        }
        response = self.service.send_query(self.website, query)
        if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
            return False
        assert response.status_code == HTTPStatus.OK, response.text
        return bool(response.json()["data"][0]["n"])


def _failing(mode: Mode) -> Callable[[World], None]:
    def fail(world: World) -> None:
        world.gate.mode = mode
        world.visitor.track()
        world.pause()
        world.visitor.track()

    return fail


def _leave_without_reply(world: World) -> None:
    """Let a request hang: what the page tracks meanwhile waits for the deadline of the request."""
    silenced = world.gate.silenced
    world.gate.mode = Mode.SILENT
    world.visitor.open_page()  # which sends at once
    world.visitor.track()
    wait_until(lambda: world.gate.silenced > silenced, "a request hangs", timeout_s=90)
    world.gate.mode = Mode.FORWARD
    world.visitor.track()


def _go_offline(world: World) -> None:
    world.visitor.set_offline(is_offline=True)
    world.visitor.track()
    world.pause()
    world.visitor.set_offline(is_offline=False)
    world.visitor.track()


def _kill_the_service(world: World) -> None:
    world.visitor.track()
    world.pause()
    world.service.kill()
    world.visitor.track()
    world.pause()
    world.service.restart()


def _reload(world: World) -> None:
    world.visitor.track()
    world.visitor.tab.reload()
    world.visitor.track()
    world.pause()
    world.visitor.tab.reload()


def _close_a_tab(world: World) -> None:
    tab = world.visitor.tab
    first = tab.selected
    tab.open_another()
    world.visitor.open_page()
    world.visitor.track()
    if world.random.random() < 0.5:
        world.pause()
    tab.close_selected()
    tab.select(first)


def _go_back_and_forward(world: World) -> None:
    visitor = world.visitor
    visitor.track()
    visitor.open_page()
    visitor.track()
    visitor.tab.back()
    visitor.track()
    world.pause()
    visitor.tab.forward()
    visitor.track()


def _use_two_tabs(world: World) -> None:
    tab = world.visitor.tab
    first, second = tab.selected, tab.open_another()
    world.visitor.open_page()
    for _ in range(2):
        for handle in (first, second):
            tab.select(handle)
            world.visitor.track()
        world.pause()
    tab.select(second)
    tab.close_selected()
    tab.select(first)


def _fill_the_storage(world: World) -> None:
    """Track with full storage. Events are then in the memory of the page, which must stay open."""
    visitor = world.visitor
    visitor.open_page()
    visitor.fill_storage()
    last = visitor.track()[-1]
    world.pause()
    world.gate.mode = Mode.FORWARD
    visitor.empty_storage()
    visitor.tab.run("headrace.flush().then(arguments[0])")
    wait_until(lambda: world.is_stored(last), f"{last} is stored", timeout_s=90)


FAULTS: Final[Mapping[str, Callable[[World], None]]] = {
    "503": _failing(Mode.UNAVAILABLE),
    "429": _failing(Mode.RATE_LIMITED),
    "reset": _failing(Mode.RESET),
    "reply lost": _failing(Mode.LOST_REPLY),
    "no reply": _leave_without_reply,
    "offline": _go_offline,
    "service killed": _kill_the_service,
    "reload": _reload,
    "tab closed": _close_a_tab,
    "back and forward": _go_back_and_forward,
    "two tabs": _use_two_tabs,
    "storage full": _fill_the_storage,
}
