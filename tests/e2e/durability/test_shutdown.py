"""SIGTERM: what was accepted is answered and kept, and the service is gone within ten seconds."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
import requests

from testing.service import Json, Service, bearer, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.envelopes import outcome, success
from tests.e2e.traffic import Ledger, load, send_until_acknowledged

pytestmark = pytest.mark.slow

GONE_WITHIN_S = 10
HURRIED = {"HEADRACE_SHUTDOWN_TIMEOUT_S": "1"}


def end(service: Service) -> int | None:
    """Send SIGTERM and return the exit code; fail where it takes too long."""
    os.kill(service.pid, signal.SIGTERM)
    wait_until(
        lambda: service.exit_code() is not None, "the service has ended", timeout_s=GONE_WITHIN_S
    )
    return service.exit_code()


def stop_process(kind: str) -> Callable[[Service], None]:
    def stop(service: Service) -> None:
        os.kill(service.child_pids(kind)[0], signal.SIGSTOP)

    return stop


def stop_everything(service: Service) -> None:
    for kind in ("engine", "worker"):
        for pid in service.child_pids(kind):
            os.kill(pid, signal.SIGSTOP)


def kill_engine(service: Service) -> None:
    os.kill(service.child_pids("engine")[0], signal.SIGKILL)


STATES: dict[str, tuple[Callable[[Service], None], dict[str, str]]] = {
    "engine stopped": (stop_process("engine"), HURRIED),
    "one worker stopped": (stop_process("worker"), HURRIED),
    "everything stopped, with the settings as they come": (stop_everything, {}),
    "engine killed just now": (kill_engine, HURRIED),
}


@pytest.mark.parametrize(("disturb", "settings"), STATES.values(), ids=list(STATES))
def test_service_stops_and_keeps_acknowledged_events(
    dedicated_service: ServiceMaker, disturb: Callable[[Service], None], settings: dict[str, str]
) -> None:
    service, ledger = dedicated_service(workers=2, settings=settings).start(), Ledger()
    website = service.website()

    with load(service, website, ledger, name="load"):
        send_until_acknowledged(ledger, 300)
        disturb(service)
        code = end(service)
    service.restart()

    assert code == 0
    ledger.compare(service.counts(website, "events", "anonymous_id"))


def test_service_stops_while_a_process_keeps_restarting(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service(workers=2).start()

    for delay_s in (0.0, 0.15, 0.3):  # before, while and after its replacement is started
        kill_engine(service)
        time.sleep(delay_s)
        assert end(service) == 0
        service.restart()


def test_large_backlog_does_not_delay_shutdown(dedicated_service: ServiceMaker) -> None:
    service = dedicated_service().start()
    website = service.website()
    batch = [{"name": "a", "properties": {"text": "x" * 300}}] * 10_000
    (engine,) = service.child_pids("engine")

    os.kill(engine, signal.SIGSTOP)
    for _ in range(10):
        response = service.post(f"/track?website_id={website}", batch)
        assert outcome(response) == (200, success("/track", 10_000))
    os.kill(engine, signal.SIGCONT)
    code = end(service)
    service.restart()

    assert code == 0
    assert service.count(website, "events") == 100_000


def test_long_query_is_answered_and_does_not_delay_shutdown(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings={**HURRIED, "HEADRACE_QUERY_TIMEOUT_S": "300"}).start()
    website, key = service.website(), service.master
    service.post(f"/track?website_id={website}", {"name": "a"})
    (engine,) = service.child_pids("engine")
    os.kill(engine, signal.SIGSTOP)  # as a query that takes for ever looks to its worker
    responses: list[requests.Response] = []

    def ask() -> None:
        body: Json = {
            "query": {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]},
            "startDate": "2026-01-01",
            "endDate": "2026-12-31",
        }
        path = f"/v1/query/custom?website_id={website}"
        with service.session() as session:
            response = session.post(service.url + path, json=body, headers=bearer(key), timeout=60)
            responses.append(response)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(1.5)  # beyond the wait for the rate limit, so that the query itself is under way
    code = end(service)
    asking.join(10)

    assert code == 0
    assert [(response.status_code, response.json()["success"]) for response in responses] == [
        (503, False)
    ]


@pytest.fixture
def connection_to() -> Iterator[Callable[[Service], socket.socket]]:
    opened: list[socket.socket] = []

    def connect(service: Service) -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", service.port), timeout=30))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


Connect = Callable[[Service], socket.socket]


def read_all(connection: socket.socket) -> bytes:
    result = b""
    while part := connection.recv(65_536):
        result += part
    return result


def test_client_stalled_within_a_body_gets_a_response_and_does_not_delay_shutdown(
    dedicated_service: ServiceMaker, connection_to: Connect
) -> None:
    service = dedicated_service(settings=HURRIED).start()
    website = service.website()
    slow = connection_to(service)
    head = f"POST /track?website_id={website} HTTP/1.1\r\nHost: localhost\r\n"
    slow.sendall(head.encode() + b'Content-Length: 17\r\n\r\n{"name":')
    time.sleep(0.3)  # the request is under way

    code = end(service)
    result = read_all(slow)
    service.restart()

    assert code == 0
    assert result.split(b"\r\n")[0] == b"HTTP/1.1 500 Internal Server Error"
    assert service.count(website, "events") == 0


def test_client_that_reads_nothing_does_not_delay_shutdown(
    dedicated_service: ServiceMaker, connection_to: Connect
) -> None:
    service = dedicated_service(settings=HURRIED).start()
    deaf = connection_to(service)
    deaf.setblocking(False)
    request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try:
        for _ in range(10_000):  # answers pile up until nothing goes either way
            deaf.send(request)
    except BlockingIOError:
        pass

    assert end(service) == 0


def test_new_connections_are_refused_during_shutdown(
    dedicated_service: ServiceMaker, connection_to: Connect
) -> None:
    service = dedicated_service().start()
    website = service.website()
    slow = connection_to(service)
    head = f"POST /track?website_id={website} HTTP/1.1\r\nHost: localhost\r\n"
    slow.sendall(head.encode() + b'Content-Length: 17\r\n\r\n{"name":')
    time.sleep(0.3)

    os.kill(service.pid, signal.SIGTERM)
    wait_until(lambda: not takes_connections(service), "no connection is taken", timeout_s=3)
    slow.sendall(b'"signup"}')
    result = read_all(slow)
    wait_until(lambda: service.exit_code() is not None, "it has ended", timeout_s=GONE_WITHIN_S)

    assert result.startswith(b"HTTP/1.1 200 ")
    service.restart()
    assert service.counts(website, "events", "event_name") == {"signup": 1}


def takes_connections(service: Service) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", service.port)) == 0
