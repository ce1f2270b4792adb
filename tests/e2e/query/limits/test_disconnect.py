"""When an HTTP client disconnects, its queries end in the engine."""

import socket
from collections.abc import Callable

import pytest

from testing.service import Service, bearer, wait_until
from tests.e2e.query.limits.heavy_query import count_running, heavy_query, store_events

ServiceMaker = Callable[..., Service]


def query_and_wait(service: Service, website: str) -> socket.socket:
    """Send a heavy query and return the connection that its response would arrive on."""
    body = heavy_query()
    headers = {"Host": "headrace", "Content-Length": str(len(body)), **bearer(service.master)}
    lines = [f"POST /v1/query/custom?website_id={website} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    connection = socket.create_connection(("127.0.0.1", service.port))
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return connection


@pytest.mark.slow
@pytest.mark.parametrize("closes_half", [False, True], ids=["both halves", "its half"])
def test_query_is_cancelled_in_the_engine_when_its_last_client_closes(
    dedicated_service: ServiceMaker, closes_half: bool
) -> None:
    service = dedicated_service().start()
    website = service.website()
    store_events(service, website)
    clients = [query_and_wait(service, website) for _ in range(2)]
    wait_until(lambda: count_running(service) == 1, "the query runs")
    clients[0].close()
    if closes_half:
        clients[1].shutdown(socket.SHUT_WR)
        assert clients[1].recv(1) == b""
    clients[1].close()
    wait_until(lambda: count_running(service) == 0, "no query runs")
    wait_until(lambda: "query_killed" in service.log_text(), "the query was killed")
