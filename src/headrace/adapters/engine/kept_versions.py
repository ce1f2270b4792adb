"""Keeps the versions of rows from one process to the next, if no row can change in between."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from headrace import __version__
from headrace.adapters.data_dir.files import remove_durably, write_atomically
from headrace.adapters.query_scheduler.watched_ranges import WatchedRanges
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.table_identity import read_identities, table_directories
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.base.errors import system_reason
from headrace.base.logs import Logger
from headrace.model.storage import STORAGE_TABLES
from headrace.ports.rows.versions import RowRange


class _StoreState(Struct, frozen=True):
    """What must be the same at the start: a part may be lost, or another store in its place.

    `headrace` is the version of the program, since another one may answer differently.
    """

    headrace: str
    identities: Mapping[str, str]
    rows: Mapping[str, int]


class _Kept(Struct, frozen=True):
    state: _StoreState
    versions: Sequence[tuple[str, RowRange, str]]


class KeptVersions:
    """Writes the versions to a file at an orderly end, and takes them back at the start.

    The file is removed before anything can change a row. So a process that is killed, or loses its
    power, leaves none, and all rows get versions that they never had. No backup has the file.
    Blocking.
    """

    def __init__(
        self, file: Path, *, chdb: ChdbInstance, ranges: WatchedRanges, log: Logger
    ) -> None:
        self._file = file
        self._chdb = chdb
        self._ranges = ranges
        self._log = log
        self._is_open = False

    def restore(self) -> None:
        """Adopt the versions of the process before, if the store is as it left it.

        The tables must have been prepared, and nothing be loaded yet. Raises `OSError` if the file
        cannot be removed.
        """
        kept = self._read()
        remove_durably(self._file.parent, [self._file])
        self._is_open = True
        if kept is None:
            return
        if kept.state == self._state():
            self._ranges.adopt({(website, rows): one for website, rows, one in kept.versions})
        else:
            self._log.warning("row_versions_outdated")

    def keep(self) -> None:
        """Write the versions, after the last change of a row. Failures are logged."""
        if not self._is_open:
            return
        self._is_open = False
        versions = [(*watched, one) for watched, one in self._ranges.versions().items()]
        if not versions:
            return
        try:
            write_atomically(self._file, msgspec.msgpack.encode(_Kept(self._state(), versions)))
        except (OSError, ClickHouseError) as error:
            self._log.warning("row_versions_not_kept", reason=system_reason(error))

    def _read(self) -> _Kept | None:
        try:
            return msgspec.msgpack.decode(self._file.read_bytes(), type=_Kept)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            self._log.warning("row_versions_unreadable", reason=system_reason(error))
            return None

    def _state(self) -> _StoreState:
        rows = {
            table: int(self._chdb.execute(f"SELECT count() FROM `{DATABASE}`.`{table}`")[0][0])  # noqa: S608 - our own names
            for table in STORAGE_TABLES
        }
        return _StoreState(__version__, read_identities(table_directories(self._chdb)), rows)
