"""Items that wait to be sent, in the order in which they were reported.

Items leave the outbox when the service has stored them; refused ones are kept beside it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from headrace_client.delivery.database import Database
from headrace_client.delivery.forks import ForkAware, prepare_for_forks
from headrace_client.delivery.in_flight import (
    InFlight,
    delete_items,
    find_unfinished,
    now_ms,
    take_next,
)
from headrace_client.errors import (
    ClientClosed,
    HeadraceClientError,
    OutboxFull,
    OutboxUnavailable,
)
from headrace_client.items import Item

_MAX_REFUSED = 10_000

_INSERT = """
INSERT INTO items (id, path, website, body)
VALUES (max(?, 1 + coalesce((SELECT max(id) FROM items), 0)), ?, ?, ?)
"""
"""An id is the time, or one more than the last: it sorts, and is not used again."""


class RefusedItem(NamedTuple):
    """An item that the service refused for good. `status` is 0 where its outcome is unknown."""

    id: int
    path: str
    item: dict[str, object]
    status: int
    code: str
    message: str
    refused_ms: int


def _item_of(body: bytes) -> dict[str, object]:
    """Return the fields of an item; of one that the disk has damaged, what is legible."""
    try:
        item: dict[str, object] = json.loads(body)
    except ValueError:
        return {"damaged": bytes(body).decode(errors="replace")}
    return item


class Counts(NamedTuple):
    """What an outbox has, and what became of the items of all processes that use it."""

    pending: int
    refused: int
    stored_total: int
    refused_total: int
    discarded_total: int


class _Append:
    """The items of one call, until they are written."""

    __slots__ = ("error", "is_done", "rows")

    def __init__(self, rows: list[tuple[int, str, str, bytes]]) -> None:
        self.rows = rows
        self.is_done = False
        self.error: HeadraceClientError | None = None


class Outbox(ForkAware):
    """What is appended is on disk; only `remove` and `refuse` take it away."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._appends: deque[_Append] = deque()
        self._lock = threading.RLock()  # a signal handler may append while its thread does
        prepare_for_forks(self)

    def before_fork(self) -> None:
        """Wait for running transactions, and close the file."""
        self._lock.acquire()
        self._database.before_fork()

    def after_fork_in_parent(self) -> None:
        """Let other threads go on."""
        self._database.after_fork_in_parent()
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget what threads of the parent were about to append."""
        self._lock = threading.RLock()
        self._appends = deque()
        self._database.after_fork_in_child()

    def append(self, items: Sequence[Item]) -> None:
        """Write items, all or none. Threads that wait for each other share a transaction.

        Raises `OutboxFull`, `OutboxUnavailable`, `ClientClosed`.
        """
        now = time.time_ns()
        one = _Append([(now, item.endpoint.value, item.website, item.body) for item in items])
        self._appends.append(one)
        with self._lock:
            if not one.is_done:
                self._write_all()
        if one.error is not None:
            raise one.error

    def _write_all(self) -> None:
        appends: list[_Append] = []
        with suppress(IndexError):  # until the queue is empty; taking from it is atomic
            while True:
                appends.append(self._appends.popleft())
        try:
            self._insert([row for one in appends for row in one.rows])
        except OutboxFull:
            for one in appends:  # a large one must not keep small ones out
                self._write_one(one)
        except HeadraceClientError as error:
            for one in appends:
                one.error = error
        except BaseException:
            for one in appends:
                one.error = OutboxUnavailable("interrupted: the item may be kept or not")
            raise
        finally:
            for one in appends:
                one.is_done = True

    def _write_one(self, one: _Append) -> None:
        try:
            self._insert(one.rows)
        except HeadraceClientError as error:
            one.error = error

    def _insert(self, rows: Sequence[tuple[int, str, str, bytes]]) -> None:
        self._database.ensure_file()
        self._database.check_disk(sum(len(body) for _, _, _, body in rows))
        if len(rows) == 1:
            with self._database.connect() as connection:
                connection.execute(_INSERT, rows[0])
        else:
            with self._database.transaction() as connection:
                connection.executemany(_INSERT, rows)

    def take(self, *, max_items: int, max_bytes: int) -> InFlight | None:
        """Note the items of the next request as in flight, and return them.

        They are those of an unfinished request, else the oldest ones. All have one endpoint and one
        website. A single item may be over `max_bytes`.
        """
        self._database.make_room()
        with self._database.transaction() as connection:
            in_flight = find_unfinished(connection) or take_next(connection, max_items, max_bytes)
        if in_flight is not None:
            with suppress(OutboxUnavailable):  # the items can be sent all the same
                self._database.ensure_file()
        return in_flight

    def close(self) -> None:
        """Close the file, which has the items that wait. Raises `OutboxUnavailable`."""
        try:
            with suppress(ClientClosed):  # by another thread, or before
                if self.newest_id():
                    self._database.ensure_file()
        finally:
            self._database.close()

    def put_back(self) -> None:
        """Let items be taken in another way: the service has stored nothing of the request."""
        with self._database.connect() as connection:
            connection.execute("DELETE FROM in_flight")

    def remove(self, in_flight: InFlight) -> None:
        """Remove the items of a request: the service has stored them."""
        with self._database.transaction() as connection:
            delete_items(connection, in_flight)
            connection.execute("DELETE FROM in_flight")
            self._count("stored", len(in_flight.ids))

    def refuse(
        self, in_flight: InFlight, messages: Mapping[int, str], *, status: int, code: str
    ) -> list[RefusedItem]:
        """Move items of a request to the refused ones, and put the others back.

        `messages` has the indexes of those that move, each with the reason.
        """
        now = now_ms()
        moved = [
            (in_flight.ids[index], in_flight.bodies[index], message)
            for index, message in messages.items()
        ]
        path = in_flight.endpoint.value
        with self._database.roomy_transaction() as connection:
            connection.executemany(
                "DELETE FROM items WHERE id = ?", [(one,) for one, _, _ in moved]
            )
            connection.executemany(
                "INSERT OR REPLACE INTO refused VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (item_id, path, in_flight.website, body, status, code, message, now)
                    for item_id, body, message in moved
                ],
            )
            connection.execute("DELETE FROM in_flight")
            self._count("refused", len(moved))
            discarded = connection.execute(
                "DELETE FROM refused WHERE id NOT IN"
                " (SELECT id FROM refused ORDER BY refused_ms DESC, id DESC LIMIT ?)",
                (_MAX_REFUSED,),
            ).rowcount
            if discarded:
                self._count("discarded", discarded)
        return [
            RefusedItem(item_id, path, _item_of(body), status, code, message, now)
            for item_id, body, message in moved
        ]

    def refused(self, limit: int) -> list[RefusedItem]:
        """Return the refused items, newest first."""
        with self._database.connect() as connection:
            rows = connection.execute(
                "SELECT id, path, body, status, code, message, refused_ms FROM refused"
                " ORDER BY refused_ms DESC, id DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [
            RefusedItem(item_id, path, _item_of(body), status, code, message, refused_ms)
            for item_id, path, body, status, code, message, refused_ms in rows
        ]

    def requeue_refused(self) -> int:
        """Let all refused items be sent again, and return how many there were."""
        with self._database.roomy_transaction() as connection:
            rows = connection.execute(
                "SELECT ?, path, website, body FROM refused ORDER BY id", (time.time_ns(),)
            ).fetchall()
            connection.execute("DELETE FROM refused")
            connection.executemany(_INSERT, rows)
        return len(rows)

    def delete_refused(self) -> int:
        """Forget all refused items, and return how many there were."""
        with self._database.connect() as connection:
            return connection.execute("DELETE FROM refused").rowcount

    def newest_id(self) -> int:
        """Return the id of the newest item, or 0."""
        with self._database.connect() as connection:
            row = connection.execute("SELECT coalesce(max(id), 0) FROM items").fetchone()
        newest: int = row[0]
        return newest

    def has_any_until(self, item_id: int) -> bool:
        """Return whether an item up to this id is pending."""
        with self._database.connect() as connection:
            row = connection.execute(
                "SELECT 1 FROM items WHERE id <= ? LIMIT 1", (item_id,)
            ).fetchone()
        return row is not None

    def counts(self) -> Counts:
        """Count what is there."""
        with self._database.connect() as connection:
            pending = connection.execute("SELECT count(*) FROM items").fetchone()[0]
            refused = connection.execute("SELECT count(*) FROM refused").fetchone()[0]
            totals = dict(connection.execute("SELECT name, value FROM counters").fetchall())
        names = ("stored", "refused", "discarded")
        return Counts(pending, refused, *(totals.get(name, 0) for name in names))

    def _count(self, name: str, number: int) -> None:
        with self._database.connect() as connection:
            connection.execute(
                "INSERT INTO counters VALUES (?1, ?2)"
                " ON CONFLICT (name) DO UPDATE SET value = value + ?2",
                (name, number),
            )
