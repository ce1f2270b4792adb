"""Live streams of a real service: what is shown, to whom, and how a stream goes on."""

import http.client
import json
import socket
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple

import pytest

from testing.service import Key, Service, bearer, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.query.queries import COUNT, NOON, event, send
from tests.oracle.fingerprint import fingerprint


class Event(NamedTuple):
    """One server-sent event."""

    kind: str
    id: str
    body: Any


def read_events(response: http.client.HTTPResponse) -> Iterator[Event]:
    """Yield the events of a stream; comments and ids alone are left out."""
    fields: dict[str, str] = {}
    for line in iter(response.readline, b""):
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name and name != ":":
            fields[name] = value
        elif "data" in fields:
            yield Event(fields["event"], fields["id"], json.loads(fields["data"]))
            fields = {}


class Stream:
    """A connection of its own whose response is read on a thread, where it is a stream."""

    def __init__(
        self, service: Service, website: str, key: Key | None = None, last_id: str = ""
    ) -> None:
        headers = bearer(key) if key else {}
        if last_id:
            headers["Last-Event-ID"] = last_id
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        self._connection.request("GET", f"/v1/live?website_id={website}", headers=headers)
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        self.status = self._response.status
        self.headers = dict(self._response.headers)
        self.events: list[Event] = []
        self._opened, self.closed = threading.Event(), threading.Event()
        if self.status == 200:
            threading.Thread(target=self._read, daemon=True).start()
            assert self._opened.wait(30)

    def json(self) -> Any:
        body = json.loads(self._response.read())
        self._connection.close()
        return body

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if self.status == 200:
            self.closed.wait()
        self._response.close()
        self._connection.close()

    def wait_for(self, count: int) -> Sequence[Event]:
        wait_until(lambda: len(self.events) >= count, f"{count} events came")
        return self.events

    def _read(self) -> None:
        with suppress(OSError, http.client.HTTPException):
            if self._response.readline() == b":\n":
                self._opened.set()
            for one in read_events(self._response):
                self.events.append(one)
        self.closed.set()


class SlowStream:
    """A stream over a socket with a small buffer, which nobody reads until `events_until`."""

    def __init__(self, service: Service, website: str, key: Key) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        self._connection.sock = socket.socket()
        self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._connection.sock.connect(("127.0.0.1", service.port))
        self._connection.request("GET", f"/v1/live?website_id={website}", headers=bearer(key))
        self._response = self._connection.getresponse()
        assert self._response.readline() == b":\n"  # the stream is open

    def events_until(self, name: str) -> Iterator[Event]:
        """Read events up to the one with this name, and close."""
        with self._response, closing(self._connection):
            for one in read_events(self._response):
                yield one
                if one.kind == "event" and one.body["row"]["event_name"] == name:
                    return


@contextmanager
def listening(service: Service, website: str, last_id: str = "") -> Generator[Stream]:
    stream = Stream(service, website, service.master, last_id)
    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream"
    try:
        yield stream
    finally:
        stream.close()


def names(events: Sequence[Event]) -> list[str]:
    return [one.body["row"]["event_name"] for one in events]


def test_an_acknowledged_event_is_shown_as_its_row(service: Service, website: str) -> None:
    with listening(service, website) as listener:
        send(
            service,
            website,
            event("a", path="/p?utm_source=x", properties={"k": [1], "value": 2.5}),
        )
        (shown,) = listener.wait_for(1)
    columns = ["event_name", "path", "time", "value", "is_bot", "website_id", "namespace"]
    stored = service.row(website, "events", columns)
    assert (shown.kind, shown.body["table"]) == ("event", "events")
    assert {name: shown.body["row"][name] for name in columns} == stored
    assert shown.body["row"]["properties"] == {"k": [1], "value": 2.5}


def test_errors_and_vitals_are_shown_too(service: Service, website: str) -> None:
    with listening(service, website) as listener:
        send(service, website, {"message": "m", "path": "/", "timestamp": NOON}, path="/errors")
        listener.wait_for(1)
        vital = {"metricName": "LCP", "metricValue": 7, "path": "/", "timestamp": NOON}
        send(service, website, vital, path="/vitals")
        shown = listener.wait_for(2)
    assert [one.body["table"] for one in shown] == ["errors", "performance"]
    assert shown[1].body["row"]["metric_value"] == 7


def test_an_error_is_shown_with_the_fingerprint_that_it_is_stored_with(
    service: Service, website: str
) -> None:
    errors = [
        {"message": f"order {number} is 'gone'", "path": "/", "timestamp": NOON, "stack": stack}
        for number, stack in ((17, "Error: x\n    at pay (a.js:1:2)"), (18, "at pay (a.js:1:2)"))
    ]
    with listening(service, website) as listener:
        send(
            service,
            website,
            *errors,
            {"message": "\\ '\t", "path": "/", "timestamp": NOON},
            path="/errors",
        )
        shown = [one.body["row"] for one in listener.wait_for(3)]
    assert [row["fingerprint"] for row in shown] == [
        fingerprint(row["error_type"], row["message"], row["stack"]) for row in shown
    ]
    assert shown[0]["fingerprint"] == shown[1]["fingerprint"] != shown[2]["fingerprint"]
    query = {"table": "errors", "selects": [COUNT], "groupBy": ["fingerprint"]}
    stored = {row["fingerprint"] for row in service.answer(website, query)}
    assert {row["fingerprint"] for row in shown} == stored


def test_each_item_is_shown_once_in_order_whichever_worker_accepted_it(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(workers=2).start()
    website = service.website()
    with listening(service, website) as first, listening(service, website) as second:
        for number in range(40):
            with Service.session() as session:  # a connection each: both workers get some
                session.post(
                    f"{service.url}/track?website_id={website}",
                    json={"name": f"n{number}"},
                    headers=bearer(service.master),
                    timeout=60,
                )
        shown = [names(one.wait_for(40)) for one in (first, second)]
    assert shown[0] == shown[1]
    assert sorted(shown[0]) == sorted(f"n{number}" for number in range(40))


def test_other_websites_and_repeated_items_are_not_shown(
    service: Service, website: str, unused_websites: Iterator[str]
) -> None:
    other = next(unused_websites)
    send(service, website, event("first", eventId="same"))
    with listening(service, website) as listener:
        send(service, other, event("other"))
        send(service, website, event("again", eventId="same"))
        send(service, website, event("x", eventId="new"), event("y", eventId="new"))
        send(service, website, event("last"))
        shown = listener.wait_for(2)
    assert names(shown) == ["x", "last"]


def test_a_refused_call_is_shown_with_its_faults_and_without_its_values(
    service: Service, website: str
) -> None:
    path = f"/track?website_id={website}"
    with listening(service, website) as stream:
        refused = service.post(path, [event(), {"name": "secret" * 100}])
        assert refused.status_code == 400
        service.post(path, data=b"{", headers=bearer(service.master))
        service.post(path, [{}], headers={"Authorization": "Bearer hr_unknown"})
        send(service, website, event("last"))
        shown = stream.wait_for(3)
    errors = refused.json()["errors"]
    assert sorted((one.kind, one.body.get("code")) for one in shown) == [
        ("event", None),
        ("refused", "INVALID_BODY"),
        ("refused", "INVALID_BODY"),
    ]
    bodies = [one.body for one in shown if one.kind == "refused"]
    assert {"path": "/track", "code": "INVALID_BODY", "errors": errors} in bodies
    assert {"path": "/track", "code": "INVALID_BODY", "errors": []} in bodies
    assert "secret" not in str(bodies)


def test_a_stream_goes_on_after_the_last_event_that_its_client_has(
    service: Service, website: str
) -> None:
    with listening(service, website) as listener:
        send(service, website, event("a"), event("b"))
        last_id = listener.wait_for(2)[0].id
    send(service, website, event("c"))
    with listening(service, website, last_id) as listener:
        assert names(listener.wait_for(2)) == ["b", "c"]


def test_a_client_that_comes_back_late_hears_how_many_it_has_missed(
    service: Service, website: str
) -> None:
    with listening(service, website) as listener:
        send(service, website, event("first"))
        last_id = listener.wait_for(1)[0].id
        send(service, website, *[event(f"n{number}") for number in range(1100)])
        listener.wait_for(1001)
    with listening(service, website, last_id) as listener:
        shown = listener.wait_for(1001)
    assert (shown[0].kind, shown[0].body) == ("missed", {"count": 100})
    assert names(shown[1:]) == [f"n{number}" for number in range(100, 1100)]


def test_a_client_that_does_not_read_gets_the_number_of_missed_items(
    dedicated_service: ServiceMaker,
) -> None:
    """More than the sockets hold comes while the slow client reads nothing.

    A service with the usual timeout would cut it off on a machine that is slow to send that much.
    """
    service = dedicated_service(settings={"HEADRACE_BODY_TIMEOUT_S": "600"}).start()
    website = service.website()
    rounds, of_round = 20, 150
    slow = SlowStream(service, website, service.master)
    with listening(service, website) as quick:
        for number in range(rounds):
            text = "x" * 5_000
            named = [f"n{number * of_round + one}" for one in range(of_round)]
            events = [event(name, properties={"text": text}) for name in named]
            for start in range(0, of_round, 50):
                send(service, website, *events[start : start + 50])
            quick.wait_for((number + 1) * of_round)
    last = f"n{rounds * of_round - 1}"
    expected = 0
    gaps = 0
    for one in slow.events_until(last):
        if one.kind == "missed":
            gaps += 1
            expected += one.body["count"]
        else:
            assert one.body["row"]["event_name"] == f"n{expected}"
            expected += 1
    assert (gaps > 0, expected) == (True, rounds * of_round)


@pytest.mark.parametrize("last_id", ["elsewhere-7", "garbage"])
def test_an_unknown_id_has_missed_nobody_knows_how_many(
    service: Service, website: str, last_id: str
) -> None:
    with listening(service, website, last_id) as listener:
        send(service, website, event("a"))
        missed, shown = listener.wait_for(2)
    assert (missed.kind, missed.body) == ("missed", {"count": None})
    assert names([shown]) == ["a"]


def test_what_was_erased_is_shown_to_no_client_that_comes_back(
    service: Service, website: str
) -> None:
    with listening(service, website) as listener:
        send(service, website, event("a", anonymousId="ann"))
        listener.wait_for(1)
        service.command("erase", "--website", website, "--anonymous-id", "ann", "--no-wait")
        with listening(service, website, "elsewhere-7") as other:
            send(service, website, event("b"))
            missed, shown = other.wait_for(2)
    assert (missed.kind, missed.body) == ("missed", {"count": None})
    assert names([shown]) == ["b"]


def test_a_key_that_ends_closes_its_streams(service: Service, website: str) -> None:
    key = service.key("read:data")
    stream = Stream(service, website, key)
    service.command("key", "revoke", key.id)
    assert stream.closed.wait(30)
    stream.close()


def test_a_key_has_twenty_streams(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(workers=2).start()
    website, key = service.website(), service.key("read:data")
    streams = [Stream(service, website, key) for _ in range(20)]
    assert {one.status for one in streams} == {200}
    refused = Stream(service, website, key)
    assert (refused.status, refused.json()["code"]) == (429, "RATE_LIMITED")
    assert int(refused.headers["retry-after"]) > 0
    others = Stream(service, website, service.master)
    assert others.status == 200
    streams[0].close()

    def is_allowed() -> bool:
        streams.append(Stream(service, website, key))
        return streams[-1].status == 200

    wait_until(is_allowed, "a closed stream is counted off")
    for one in (*streams, others):
        one.close()


@pytest.mark.parametrize(
    ("scope", "status", "error"),
    [
        ("", 401, "Authentication required"),
        ("track:events", 403, "API key missing read:data scope"),
    ],
)
def test_a_stream_is_refused_as_a_query_is(
    service: Service, website: str, scope: str, status: int, error: str
) -> None:
    stream = Stream(service, website, service.key(scope) if scope else None)
    assert (stream.status, stream.json()["error"]) == (status, error)


def test_a_public_website_is_shown_without_a_key(service: Service) -> None:
    website = service.website(public=True)
    stream = Stream(service, website)
    send(service, website, event("a"))
    assert names(stream.wait_for(1)) == ["a"]
    stream.close()


def test_streams_end_with_the_service_and_go_on_after_a_restart(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    with listening(service, website) as stream:
        send(service, website, event("a"))
        last_id = stream.wait_for(1)[0].id
        assert service.stop() == 0
        assert stream.closed.wait(30)
    service.restart()
    with listening(service, website, last_id) as stream:
        send(service, website, event("b"))
        missed, shown = stream.wait_for(2)
    assert (missed.kind, missed.body) == ("missed", {"count": None})
    assert names([shown]) == ["b"]
