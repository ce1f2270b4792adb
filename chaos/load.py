"""Load generators: send numbered events, in batches and one at a time, and repeat some requests."""

import http.client
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

from chaos.event_journal import Bucket, EventJournal, Fate
from chaos.query_client import Account
from chaos.service import HOST, RESPONSE_TIMEOUT_S, Json

TABLES: Mapping[str, str] = {"/track": "events", "/vitals": "performance", "/errors": "errors"}
THREADS = 4
_BATCH_SIZES = (1, 1, 1, 3, 20)
_LONGEST_PAUSE_S = 0.012
_RETRY_PAUSE_S = 0.02
_REMEMBERED_REQUESTS = 1000


def session_of(event_id: str) -> str:
    """Return the session of an event: that of its sender in its round."""
    return "-".join(event_id.split("-")[:2])


class Request(NamedTuple):
    """One request, identical for each attempt."""

    target: str
    bucket: Bucket
    ids: tuple[str, ...]
    body: bytes
    headers: Mapping[str, str]
    is_repeatable: bool


class Traffic:
    """State shared by all senders: the journal, the requests to repeat and the response counts."""

    def __init__(self, *, port: int, account: Account, journal: EventJournal) -> None:
        self.port = port
        self.account = account
        self.journal = journal
        self.acknowledged_requests = 0
        self.statuses: dict[int, int] = {}
        self.repeated = 0
        self.longest_wait_s = 0.0
        self.problems: list[str] = []
        self._repeats: deque[Request] = deque(maxlen=_REMEMBERED_REQUESTS)
        self._lock = threading.Lock()
        self._sending = threading.Condition()
        self._requests_in_progress = 0
        self._is_paused = False

    @contextmanager
    def paused(self) -> Generator[None]:
        """Send nothing until the block ends. Waits for the responses to what was sent."""
        with self._sending:
            self._is_paused = True
            self._sending.wait_for(lambda: self._requests_in_progress == 0)
        try:
            yield
        finally:
            with self._sending:
                self._is_paused = False

    @contextmanager
    def permission_to_send(self) -> Generator[bool]:
        """Yield whether a request may be sent now; it is in progress until the block ends."""
        with self._sending:
            is_permitted = not self._is_paused
            self._requests_in_progress += 1
        try:
            yield is_permitted
        finally:
            with self._sending:
                self._requests_in_progress -= 1
                self._sending.notify_all()

    def queue_repeat(self, request: Request) -> None:
        """Queue a request to be sent again, immediately or rounds later."""
        self._repeats.append(request)

    def forget_repeats(self, is_forgotten: Callable[[str], bool]) -> None:
        """Do not repeat requests with such events unless all of them were acknowledged."""
        acknowledged = self.journal.acknowledged()
        kept = [
            request
            for request in self._repeats
            if not any(map(is_forgotten, request.ids)) or acknowledged.issuperset(request.ids)
        ]
        self._repeats.clear()
        self._repeats.extend(kept)

    def next_repeat(self, random: Random) -> Request | None:
        """Return a request to repeat: one of the newest or one of the oldest."""
        try:
            return self._repeats.pop() if random.random() < 0.5 else self._repeats.popleft()
        except IndexError:
            return None

    def record_response(
        self, request: Request, status: int | None, body: bytes, waited_s: float
    ) -> Fate:
        """Record the response to a request; the status is None if there was no response."""
        fate = _FATES.get(status or 0, Fate.REFUSED)
        self.journal.record(request.bucket, request.ids, fate)
        with self._lock:
            self.statuses[status or 0] = self.statuses.get(status or 0, 0) + 1
            self.longest_wait_s = max(self.longest_wait_s, waited_s)
            if fate is Fate.ACKNOWLEDGED:
                self.acknowledged_requests += 1
                if _count_of(body) != len(request.ids):
                    self.problems.append(f"{len(request.ids)} events were answered with {body!r}")
        return fate


def _count_of(body: bytes) -> Json:
    """Return the number of events that a response acknowledges; None if it has none."""
    try:
        return json.loads(body)["count"]
    except (ValueError, TypeError, KeyError):
        return None


_FATES: Mapping[int, Fate] = {200: Fate.ACKNOWLEDGED, 0: Fate.UNANSWERED, 500: Fate.UNANSWERED}
"""Every other status is a rejection: no event of the request may be stored."""


@contextmanager
def load(traffic: Traffic, name: str, seed: str) -> Generator[None]:
    """Send requests from several threads until the block ends."""
    stop = threading.Event()
    senders = [
        threading.Thread(target=_Sender(traffic, f"{name}-{n}", Random(f"{seed}-{n}"), stop).run)
        for n in range(THREADS)
    ]
    for sender in senders:
        sender.start()
    try:
        yield
    finally:
        stop.set()
        for sender in senders:
            sender.join()


class _Sender:
    """A thread with one connection, which it reuses until the connection breaks."""

    def __init__(self, traffic: Traffic, name: str, random: Random, stop: threading.Event) -> None:
        self._traffic = traffic
        self._name = name
        self._random = random
        self._stop = stop
        self._number = 0
        self._connection = http.client.HTTPConnection(
            HOST, traffic.port, timeout=RESPONSE_TIMEOUT_S
        )

    def run(self) -> None:
        """Send requests until stopped, whatever the responses are."""
        while not self._stop.is_set():
            with self._traffic.permission_to_send() as is_permitted:
                if is_permitted and self._is_connected():
                    pause_s = self._send_one()
                else:
                    pause_s = _RETRY_PAUSE_S  # nothing was sent
            self._stop.wait(pause_s)
        self._connection.close()

    def _is_connected(self) -> bool:
        if self._connection.sock is None:
            try:
                self._connection.connect()
            except OSError:
                return False
        return True

    def _send_one(self) -> float:
        """Send a request, new or repeated; return the time until the next one in seconds."""
        repeat = self._traffic.next_repeat(self._random) if self._random.random() < 0.15 else None
        request = repeat or self._new_request()
        if request.is_repeatable and self._random.random() < 0.05:
            self._traffic.queue_repeat(request)  # another thread may send it at the same time
        started_s = time.monotonic()
        status, body = self._exchange(request)
        fate = self._traffic.record_response(request, status, body, time.monotonic() - started_s)
        self._traffic.repeated += repeat is not None
        repeat_probability = 0.05 if fate is Fate.ACKNOWLEDGED else 0.8
        if request.is_repeatable and self._random.random() < repeat_probability:
            self._traffic.queue_repeat(request)
        return _RETRY_PAUSE_S if status == 503 else self._random.uniform(0, _LONGEST_PAUSE_S)

    def _exchange(self, request: Request) -> tuple[int | None, bytes]:
        try:
            self._connection.request("POST", request.target, request.body, dict(request.headers))
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return None, b""

    def _new_request(self) -> Request:
        random, self._number = self._random, self._number + 1
        endpoint = random.choices(list(TABLES), (6, 2, 2))[0]
        request_id = f"{self._name}-{self._number}"
        ids = tuple(f"{request_id}-{index}" for index in range(random.choice(_BATCH_SIZES)))
        path = "/" + self._name.partition("-")[0]
        kind = random.choices(("plain", "event ids", "key", "bad"), (35, 35, 25, 5))[0]
        headers = {"Content-Type": "application/json"}
        if kind == "key":
            headers["Idempotency-Key"] = request_id
        elif random.random() < 0.3:
            headers["Authorization"] = f"Bearer {self._traffic.account.key}"
        return Request(
            target=f"{endpoint}?client_id={self._traffic.account.website}",
            bucket=Bucket(TABLES[endpoint], path),
            ids=ids,
            body=json.dumps(_items(endpoint, kind, ids, path)).encode(),
            headers=headers,
            is_repeatable=kind in {"event ids", "key"},
        )


def _items(endpoint: str, kind: str, ids: tuple[str, ...], path: str) -> list[dict[str, Json]]:
    """Build the items of a request. Items of an invalid request lack a field at the end."""
    items = [_ITEMS[endpoint](event_id, path) for event_id in ids]
    if kind == "event ids":
        items = [{**item, "eventId": item["anonymousId"]} for item in items]
    if kind == "bad":
        del items[-1]["path" if endpoint != "/track" else "name"]
    return items


def _event(event_id: str, path: str) -> dict[str, Json]:
    return {
        "name": "numbered",
        "path": path,
        "anonymousId": event_id,
        "sessionId": session_of(event_id),
        "properties": {"id": event_id},
    }


def _vital(event_id: str, path: str) -> dict[str, Json]:
    common_fields = {
        "timestamp": time.time_ns() // 1_000_000,
        "path": path,
        "anonymousId": event_id,
        "sessionId": session_of(event_id),
    }
    return {**common_fields, "metricName": "LCP", "metricValue": 1.5}


def _error(event_id: str, path: str) -> dict[str, Json]:
    common_fields = {
        "timestamp": time.time_ns() // 1_000_000,
        "path": path,
        "anonymousId": event_id,
        "sessionId": session_of(event_id),
    }
    return {**common_fields, "message": "numbered"}


_ITEMS: Mapping[str, Callable[[str, str], dict[str, Json]]] = {
    "/track": _event,
    "/vitals": _vital,
    "/errors": _error,
}
