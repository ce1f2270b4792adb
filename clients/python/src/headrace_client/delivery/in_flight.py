"""The items that are in flight, in the request that is on its way: one row of the outbox.

It has the time since which their outcome is unknown, and it outlives a killed process: the next
sender begins with the same items.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import NamedTuple

from headrace_client.items import Endpoint

_WINDOW = 5000  # items that are searched for more of the same endpoint and website
_OLDEST = """
SELECT id, body FROM (SELECT * FROM items ORDER BY id LIMIT ?) WHERE path = ? AND website = ?
"""


class InFlight(NamedTuple):
    """The items of one request. `since_ms` is when it was first sent.

    `is_repeat` says that an earlier request with them had no known outcome.
    """

    endpoint: Endpoint
    website: str
    ids: tuple[int, ...]
    bodies: tuple[bytes, ...]
    since_ms: int
    is_repeat: bool


def delete_items(connection: sqlite3.Connection, in_flight: InFlight) -> None:
    """Delete the items of a request."""
    connection.execute(
        "DELETE FROM items WHERE path = ? AND website = ? AND id BETWEEN ? AND ?", _range(in_flight)
    )


def find_unfinished(connection: sqlite3.Connection) -> InFlight | None:
    """Return the items of an earlier request, if its outcome is unknown."""
    row = connection.execute(
        "SELECT path, website, first_id, last_id, since_ms FROM in_flight"
    ).fetchone()
    if row is None:
        return None
    found = connection.execute(
        "SELECT id, body FROM items WHERE path = ? AND website = ? AND id BETWEEN ? AND ?"
        " ORDER BY id",
        row[:4],
    ).fetchall()
    if not found:  # in a damaged file
        connection.execute("DELETE FROM in_flight")
        return None
    return _in_flight(row[0], row[1], found, since_ms=row[4], is_repeat=True)


def take_next(connection: sqlite3.Connection, max_items: int, max_bytes: int) -> InFlight | None:
    """Note the oldest items that one request can have as in flight, if there are any."""
    oldest = connection.execute("SELECT path, website FROM items ORDER BY id LIMIT 1").fetchone()
    if oldest is None:
        return None
    path, website = oldest
    limit = 1 if path == Endpoint.IDENTIFY.value else max_items  # it takes no arrays
    found: list[tuple[int, bytes]] = []
    size = 0
    for item_id, body in connection.execute(_OLDEST, (_WINDOW, path, website)):
        size += len(body) + 1
        if found and (size > max_bytes or len(found) == limit):
            break
        found.append((item_id, body))
    in_flight = _in_flight(path, website, found, since_ms=now_ms(), is_repeat=False)
    connection.execute(
        "INSERT INTO in_flight VALUES (1, ?, ?, ?, ?, ?)", (*_range(in_flight), in_flight.since_ms)
    )
    return in_flight


def _in_flight(
    path: str,
    website: str,
    found: Sequence[tuple[int, bytes]],
    *,
    since_ms: int,
    is_repeat: bool,
) -> InFlight:
    ids = tuple(item_id for item_id, _ in found)
    bodies = tuple(body for _, body in found)
    return InFlight(Endpoint(path), website, ids, bodies, since_ms, is_repeat)


def _range(in_flight: InFlight) -> tuple[str, str, int, int]:
    return in_flight.endpoint.value, in_flight.website, in_flight.ids[0], in_flight.ids[-1]


def now_ms() -> int:
    """Return the time in epoch milliseconds."""
    return time.time_ns() // 1_000_000
