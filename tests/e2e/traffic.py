"""Senders with a ledger: what they sent, and what the service said to it."""

import itertools
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager

import requests

from testing.service import Service, wait_until

BATCH_SIZES = (1, 3, 25)


class Ledger:
    """Every event that was sent, by its own id, in the one list that its reply put it in."""

    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.unanswered: list[str] = []
        self.bad: set[str] = set()
        self.statuses: set[int | None] = set()
        self._lock = threading.Lock()

    def enter(self, ids: list[str], status: int | None) -> None:
        """Book the events of one request; None for no answer, a 500 leaves it open too."""
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
        """Tell whether an event was sent in a batch that must be refused."""
        return one in self.bad

    def compare(self, stored: dict[str, int]) -> None:
        """Hold the service to its word, with what it has stored as a count for each event."""
        acknowledged, refused = set(self.acknowledged), set(self.refused)
        assert not acknowledged & self.bad, "bad events were acknowledged"
        missing = acknowledged - stored.keys()
        assert not missing, f"{len(missing)} acknowledged events are missing"
        assert not (refused | self.bad) & stored.keys(), "refused events are stored"
        assert set(stored.values()) <= {1}, "events are stored twice"
        assert stored.keys() <= acknowledged | set(self.unanswered), "events nobody sent"


class Sender(threading.Thread):
    """Sends batches to one website until it is stopped; every fifth request is a bad one."""

    def __init__(self, service: Service, website: str, ledger: Ledger, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._url = f"{service.url}/track?website_id={website}"
        self._session = service.session()
        self._ledger = ledger
        self._stop_requested = threading.Event()

    def run(self) -> None:
        """Send until `finish`, whatever the answers are."""
        with self._session as session:
            for number, size in enumerate(itertools.cycle(BATCH_SIZES)):
                if self._stop_requested.is_set():
                    return
                ids = [f"{self.name}-{number}-{index}" for index in range(size)]
                self._ledger.enter(ids, self._send(session, ids, is_bad=number % 5 == 4))

    def finish(self) -> None:
        """Stop sending and wait for the last answer."""
        self._stop_requested.set()
        self.join()

    def _send(self, session: requests.Session, ids: list[str], *, is_bad: bool) -> int | None:
        batch = [{"name": "load", "anonymousId": one, "eventId": one} for one in ids]
        if is_bad:
            self._ledger.bad.update(ids)
            batch[-1]["name"] = ""
        try:
            response = session.post(self._url, data=json.dumps(batch), timeout=10)
        except requests.RequestException:
            self._stop_requested.wait(0.02)  # nobody listens: do not spin
            return None
        return response.status_code


@contextmanager
def load(service: Service, website: str, ledger: Ledger, *, name: str) -> Generator[None]:
    """Send from four threads while the block runs; it begins once answers are coming."""
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
    """Wait until so many more events were acknowledged."""
    goal = len(ledger.acknowledged) + events
    wait_until(lambda: len(ledger.acknowledged) >= goal, f"{events} more are acknowledged")
