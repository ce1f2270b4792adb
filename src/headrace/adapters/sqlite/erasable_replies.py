"""Takes event ids out of the replies that are kept for an Idempotency-Key."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any, Final

import msgspec

from headrace.base.errors import StoreUnavailable

_BUSY_TIMEOUT_S: Final = 10


class SqliteErasableReplies:
    """An `ErasableReplies` over the file that the workers of a machine share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def forget_event_id(self, event_id: str) -> None:
        """Replace an event id by null; see `ErasableReplies.forget_event_id`.

        Rebuilds the file, because its free pages may have older replies, and empties the WAL.
        """
        if not self._path.exists():
            return
        try:
            with contextlib.closing(
                sqlite3.connect(self._path, isolation_level=None, timeout=_BUSY_TIMEOUT_S)
            ) as connection:
                _replace(connection, event_id)
                connection.execute("VACUUM")
                ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise StoreUnavailable(f"cannot change the idempotency keys: {error}") from error
        if busy:
            raise StoreUnavailable("the idempotency keys are in use: their WAL cannot be emptied")


def _replace(connection: sqlite3.Connection, event_id: str) -> None:
    needle = msgspec.json.encode(event_id)
    rows = connection.execute(
        "SELECT digest, reply FROM claims WHERE instr(reply, ?) > 0", (needle,)
    ).fetchall()
    connection.executemany(
        "UPDATE claims SET reply = ? WHERE digest = ?",
        [(_without(reply, event_id), digest) for digest, reply in rows],
    )


def _without(reply: bytes, event_id: str) -> bytes:
    decoded: dict[str, Any] = msgspec.json.decode(reply)
    results = [
        {**result, "eventId": None} if result.get("eventId") == event_id else result
        for result in decoded.get("results", ())
    ]
    return msgspec.json.encode({**decoded, "results": results})
