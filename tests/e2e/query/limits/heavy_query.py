"""A query that runs for seconds, and the events that make it slow."""

import json

from testing.service import Service
from tests.e2e.query.queries import event, query, select, send, where

_KEYS = [f"key{number}" for number in range(20)]
_EVENTS = 40_000
_EVENTS_A_REQUEST = 4_000


def store_events(service: Service, website: str) -> None:
    """Store the events that the heavy query reads."""
    properties = {key: f"{key} {'x' * 40}" for key in _KEYS}
    for first in range(0, _EVENTS, _EVENTS_A_REQUEST):
        numbers = range(first, first + _EVENTS_A_REQUEST)
        send(service, website, *(event(properties={**properties, "key0": n}) for n in numbers))
    service.count(website, "events", start="2025-03-01", end="2025-03-31")  # waits for the load


def heavy_query() -> bytes:
    """Return a body whose query reads the JSON of every row 35 times."""
    sent_query = query(
        *(select(f"properties.{key}", "p99", f"p99 of {key}") for key in _KEYS[:10]),
        filters=[where(f"properties.{key}", "ne", "nothing") for key in _KEYS],
        group_by=[f"properties.{key}" for key in _KEYS[:5]],
    )
    return json.dumps(
        {"query": sent_query, "startDate": "2025-03-01", "endDate": "2025-03-31"}
    ).encode()


def count_running(service: Service) -> int:
    """Return the number of occupied slots; a slot is free again once the engine's thread is."""
    (value,) = [
        line.split(" ")[1]
        for line in service.get("/metrics").text.splitlines()
        if line.startswith("headrace_selects_running ")
    ]
    return int(float(value))
