"""Concurrent senders, and a record of what they sent and how the service responded."""

import itertools
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager

import requests

from testing.service import REQUEST_TIMEOUT_S, Service, wait_until

BATCH_SIZES = (1, 3, 25)


class Ledger:
    """Lists every sent event by its id, in exactly one list according to its response."""

    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.unanswered: list[str] = []
        self.bad: set[str] = set()
        self.statuses: set[int | None] = set()
        self._lock = threading.Lock()

    def enter(self, ids: list[str], status: int | None) -> None:
        """Record the events of one request; after a 500 or no response the result is unknown."""
        if status == 200:
            page = self.acknowledged
        elif status is None or status == 500:
            page = self.unanswered
        else:
            page = self.refused
        with self._lock:
            self.statuses.add(status)
            page.extend(ids)

    def is_bad(self, one: str) -> bool:
        """Return whether an event was sent in an invalid batch, which the service must reject."""
        return one in self.bad

    def missing(self, stored: dict[str, int]) -> set[str]:
        """Return the acknowledged events that are not stored."""
        return set(self.acknowledged) - stored.keys()

    def compare(self, stored: dict[str, int]) -> None:
        """Check the stored count of each event against the responses."""
        acknowledged, refused = set(self.acknowledged), set(self.refused)
        assert not acknowledged & self.bad, "bad events were acknowledged"
        missing = self.missing(stored)
        assert not missing, f"{len(missing)} acknowledged events are missing"
        assert not (refused | self.bad) & stored.keys(), "refused events are stored"
        assert set(stored.values()) <= {1}, "events are stored twice"
        assert stored.keys() <= acknowledged | set(self.unanswered), "events nobody sent"


class Sender(threading.Thread):
    """Sends batches to one website until it is stopped; every fifth batch is invalid."""

    def __init__(self, service: Service, website: str, ledger: Ledger, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._url = f"{service.url}/track?website_id={website}"
        self._session = service.session()
        self._ledger = ledger
        self._stop_requested = threading.Event()

    def run(self) -> None:
        """Send until `finish` is called, whatever the responses are."""
        with self._session as session:
            for number, size in enumerate(itertools.cycle(BATCH_SIZES)):
                if self._stop_requested.is_set():
                    return
                ids = [f"{self.name}-{number}-{index}" for index in range(size)]
                self._ledger.enter(ids, self._send(session, ids, is_bad=number % 5 == 4))

    def finish(self) -> None:
        """Stop sending and wait for the last response."""
        self._stop_requested.set()
        self.join()

    def _send(self, session: requests.Session, ids: list[str], *, is_bad: bool) -> int | None:
        batch = [{"name": "load", "anonymousId": one, "eventId": one} for one in ids]
        if is_bad:
            self._ledger.bad.update(ids)
            batch[-1]["name"] = ""
        try:
            response = session.post(self._url, data=json.dumps(batch), timeout=REQUEST_TIMEOUT_S)
        except requests.RequestException:
            self._stop_requested.wait(0.02)  # the service is down: avoid a busy loop
            return None
        return response.status_code


@contextmanager
def load(service: Service, website: str, ledger: Ledger, *, name: str) -> Generator[None]:
    """Send from four threads while the block runs; enter it after 200 acknowledged events."""
    before = len(ledger.acknowledged)
    senders = [Sender(service, website, ledger, f"{name}{number}") for number in range(4)]
    for sender in senders:
        sender.start()
    try:
        wait_until(lambda: len(ledger.acknowledged) > before + 200, "events are acknowledged")
        yield
    finally:
        for sender in senders:
            sender.finish()


def send_until_acknowledged(ledger: Ledger, events: int) -> None:
    """Wait until the given number of additional events is acknowledged."""
    goal = len(ledger.acknowledged) + events
    wait_until(lambda: len(ledger.acknowledged) >= goal, f"{events} more are acknowledged")
