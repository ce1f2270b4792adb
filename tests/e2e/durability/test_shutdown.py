"""On SIGTERM, accepted requests complete, events are kept, and the service ends within 10 s."""

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import requests

from testing.service import Service, bearer, wait_until
from tests.e2e.conftest import ServiceMaker
from tests.e2e.connections import accepts_connections, connect, read_all, send_partial_body
from tests.e2e.envelopes import outcome, success
from tests.e2e.query.limits.heavy_query import count_running, heavy_query, store_events
from tests.e2e.traffic import Ledger, load, send_until_acknowledged

pytestmark = pytest.mark.slow

GONE_WITHIN_S = 10
STALLED_AFTER_S = 1
HURRIED = {"HEADRACE_SHUTDOWN_TIMEOUT_S": "1"}


def end(service: Service) -> int | None:
    """Send SIGTERM and return the exit code; fail if the service takes too long."""
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
    "everything stopped, with default settings": (stop_everything, {}),
    "engine just killed": (kill_engine, HURRIED),
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


def test_engine_is_killed_soon_after_the_workers_that_had_to_be_killed(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service(settings=HURRIED).start()
    stop_everything(service)

    code = end(service)

    lines = [json.loads(line) for line in service.log_text().splitlines() if line[0] == "{"]
    killed = [line for line in lines if line["event_name"] == "process_killed"]
    assert code == 0
    assert [(line["child"], line["after_s"]) for line in killed] == [
        ("worker-0", 3.0),
        ("engine", 4.5),
    ]


def is_replaced(service: Service, dead: int) -> bool:
    """Return whether another engine process has replaced a dead one."""
    return any(pid != dead for pid in service.child_pids("engine"))


PHASES: dict[str, Callable[[Service, int], bool]] = {
    "before the replacement starts": lambda _service, _dead: True,
    "while the replacement starts": is_replaced,
    "when the replacement is ready": lambda service, dead: (
        is_replaced(service, dead) and service.is_ready()
    ),
}


@pytest.mark.parametrize("phase", PHASES)
def test_service_stops_while_a_process_restarts(
    dedicated_service: ServiceMaker, phase: str
) -> None:
    service = dedicated_service(workers=2).start()
    (engine,) = service.child_pids("engine")

    kill_engine(service)
    wait_until(lambda: PHASES[phase](service, engine), phase)

    assert end(service) == 0


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
    website, headers = service.website(), bearer(service.master)
    store_events(service, website)
    (engine,) = service.child_pids("engine")
    responses: list[requests.Response] = []

    def send_query() -> None:
        url = f"{service.url}/v1/query/custom?website_id={website}"
        with service.session() as session:
            responses.append(session.post(url, heavy_query(), headers=headers, timeout=60))

    querying = threading.Thread(target=send_query)
    querying.start()
    wait_until(lambda: count_running(service) == 1, "the query runs")
    os.kill(engine, signal.SIGSTOP)  # to the worker, the select never returns
    code = end(service)
    querying.join(10)

    assert code == 0
    assert [(response.status_code, response.json()["success"]) for response in responses] == [
        (503, False)
    ]


@pytest.fixture
def connection_to() -> Iterator[Callable[[Service], socket.socket]]:
    opened: list[socket.socket] = []

    def make(service: Service) -> socket.socket:
        opened.append(connect(service))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


Connect = Callable[[Service], socket.socket]


def test_client_stalled_within_a_body_gets_a_response_and_does_not_delay_shutdown(
    dedicated_service: ServiceMaker, connection_to: Connect
) -> None:
    service = dedicated_service(settings=HURRIED).start()
    website = service.website()
    slow = connection_to(service)
    send_partial_body(slow, website, part=b'{"name":', size=17)

    code = end(service)
    result = read_all(slow)
    service.restart()

    assert code == 0
    assert result.split(b"\r\n")[0] == b"HTTP/1.1 500 Internal Server Error"
    assert service.count(website, "events") == 0


def send_until_stalled(connection: socket.socket, request: bytes) -> None:
    """Send requests without reading responses until the service stops reading."""
    connection.settimeout(STALLED_AFTER_S)
    for _ in range(1_000):
        try:
            connection.sendall(request * 1_000)
        except TimeoutError:
            return
    raise AssertionError("the service read a million requests without a reader of its responses")


def test_client_that_reads_nothing_does_not_delay_shutdown(
    dedicated_service: ServiceMaker, connection_to: Connect
) -> None:
    service = dedicated_service(settings=HURRIED).start()
    deaf = connection_to(service)
    send_until_stalled(deaf, b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert end(service) == 0


def test_new_connections_are_refused_during_shutdown(
    dedicated_service: ServiceMaker, connection_to: Connect
) -> None:
    service = dedicated_service().start()
    website = service.website()
    slow = connection_to(service)
    send_partial_body(slow, website, part=b'{"name":', size=17)

    os.kill(service.pid, signal.SIGTERM)
    wait_until(lambda: not accepts_connections(service), "connections are refused")
    slow.sendall(b'"signup"}')
    result = read_all(slow)
    wait_until(
        lambda: service.exit_code() is not None, "the service has ended", timeout_s=GONE_WITHIN_S
    )

    assert result.startswith(b"HTTP/1.1 200 ")
    service.restart()
    assert service.counts(website, "events", "event_name") == {"signup": 1}
