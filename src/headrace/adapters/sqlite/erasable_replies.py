"""Takes event ids out of the replies that are kept for an Idempotency-Key."""

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec

from headrace.adapters.data_dir.sqlite_files import close_durably
from headrace.base.errors import StoreUnavailable
from headrace.formats.kept_replies import event_ids_of, without_event_id

_BUSY_TIMEOUT_S: Final = 10
_REPLIES: Final = "SELECT reply FROM claims WHERE reply IS NOT NULL"
_REPLIES_WITH: Final = "SELECT digest, reply FROM claims WHERE instr(reply, ?)"
_REPLACE: Final = "UPDATE claims SET reply = ? WHERE digest = ? AND reply = ?"


class SqliteErasableReplies:
    """An `ErasableReplies` over the file that the workers of a machine share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def event_ids(self) -> frozenset[str]:
        """Return the event ids that replies name; see `ErasableReplies.event_ids`."""
        if not self._path.exists():
            return frozenset()
        with self._connected() as connection:
            replies = connection.execute(_REPLIES)
            return frozenset(found for (reply,) in replies for found in event_ids_of(reply))

    def forget_event_id(self, event_id: str) -> None:
        """Replace an event id by null; see `ErasableReplies.forget_event_id`.

        Rebuilds the file, because its free pages may have older replies, and empties the WAL.
        """
        if not self._path.exists():
            return
        with self._connected() as connection:
            searched = (msgspec.json.encode(event_id),)
            for digest, reply in connection.execute(_REPLIES_WITH, searched).fetchall():
                if (changed := without_event_id(reply, event_id)) is not None:
                    connection.execute(_REPLACE, (changed, digest, reply))
            connection.execute("VACUUM")
            ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise StoreUnavailable("the idempotency keys are in use: their WAL cannot be emptied")

    @contextlib.contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=_BUSY_TIMEOUT_S)
            try:
                yield connection
            finally:
                close_durably(connection, self._path)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"cannot change the idempotency keys: {error}") from error
