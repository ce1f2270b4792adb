"""Callers who hang up, over HTTP: their queries end in the engine."""

import json
import socket
from collections.abc import Callable

import pytest

from testing.service import Service, bearer, wait_until
from tests.e2e.query.queries import event, query, select, send, where

ServiceMaker = Callable[..., Service]

KEYS = [f"key{number}" for number in range(20)]
EVENTS = 40_000


def heavy_query() -> bytes:
    """Return a body whose answer takes the engine seconds: every row's JSON is read 35 times."""
    sent_query = query(
        *(select(f"properties.{key}", "p99", f"p99 of {key}") for key in KEYS[:10]),
        filters=[where(f"properties.{key}", "ne", "nothing") for key in KEYS],
        group_by=[f"properties.{key}" for key in KEYS[:5]],
    )
    return json.dumps(
        {"query": sent_query, "startDate": "2025-03-01", "endDate": "2025-03-31"}
    ).encode()


def query_and_wait(service: Service, website: str) -> socket.socket:
    """Send a heavy question and return the connection on which its answer would come."""
    body = heavy_query()
    headers = {"Host": "headrace", "Content-Length": str(len(body)), **bearer(service.master)}
    lines = [f"POST /v1/query/custom?website_id={website} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    connection = socket.create_connection(("127.0.0.1", service.port))
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return connection


def running(service: Service) -> int:
    """Return how many selects hold a place: until the engine's thread is free again."""
    (value,) = [
        line.split(" ")[1]
        for line in service.get("/metrics").text.splitlines()
        if line.startswith("headrace_selects_running ")
    ]
    return int(float(value))


@pytest.mark.slow
def test_query_is_cancelled_in_the_engine_when_its_last_client_disconnects(
    dedicated_service: ServiceMaker,
) -> None:
    service = dedicated_service().start()
    website = service.website()
    properties = {key: f"{key} {'x' * 40}" for key in KEYS}
    for first in range(0, EVENTS, 4_000):
        numbers = range(first, first + 4_000)
        send(service, website, *(event(properties={**properties, "key0": n}) for n in numbers))
    service.count(website, "events", start="2025-03-01", end="2025-03-31")  # brings all in
    clients = [query_and_wait(service, website) for _ in range(2)]
    wait_until(lambda: running(service) == 1, "the query runs")
    clients[0].close()
    clients[1].close()
    wait_until(lambda: running(service) == 0, "no query runs")
    wait_until(lambda: "query_killed" in service.log_text(), "the query was killed")
