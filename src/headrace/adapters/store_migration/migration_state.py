"""The state of a migration between stores in the data directory, and what it blocks.

moving/move.json    the target, and whether the migration is done
moving/piece        the chunk being sent; see `copying`
moving/lock         locked by the running command
"""

import contextlib
import fcntl
import secrets
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.files import write_atomically
from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.base.errors import OperatorError, StoreUnavailable, system_reason
from headrace.model.migration import MigrationTarget
from headrace.ports.event_log import LogOffset

_DIRECTORY: Final = "moving"
_COMMAND: Final = "headrace migrate-store"


class StoreMigration(Struct, frozen=True):
    """A migration: its id for tokens, the target, the ClickHouse store, and whether it is done."""

    id: str
    to: MigrationTarget
    clickhouse: str
    is_done: bool = False


class Chunk(Struct, frozen=True):
    """Rows being sent: the table's name, the chunk's token, and an Arrow IPC stream."""

    table: str
    token: str
    stream: bytes


def clickhouse_identity(address: ClickHouseAddress) -> str:
    """Return what identifies a ClickHouse store; its hosts and users may change."""
    return f"{address.database} of {address.cluster}" if address.cluster else address.database


class MigrationState:
    """Reads and writes the migration state of a data directory; also its `ChunkJournal`."""

    def __init__(self, root: Path) -> None:
        self._directory = root / _DIRECTORY
        self._file = self._directory / "move.json"
        self._chunk_file = self._directory / "piece"

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Lock the migration. Raises `OperatorError` when another command has locked it."""
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            with (self._directory / "lock").open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
        except BlockingIOError:
            raise OperatorError(f"another `{_COMMAND}` runs already") from None

    def read(self) -> StoreMigration | None:
        """Return the last migration; None without one. Raises `OperatorError`."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=StoreMigration)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise OperatorError(f"cannot read {self._file}: {system_reason(error)}") from error

    def start(self, to: MigrationTarget, clickhouse: str) -> StoreMigration:
        """Record durably that a migration begins. Removes the pending chunk of an earlier one."""
        migration = StoreMigration(secrets.token_hex(8), to, clickhouse)
        self._chunk_file.unlink(missing_ok=True)
        self._write(migration)
        return migration

    def mark_done(self, migration: StoreMigration) -> None:
        """Record durably that every row was migrated."""
        self._write(msgspec.structs.replace(migration, is_done=True))

    def pending(self) -> Chunk | None:
        """Return the pending chunk; see `ChunkJournal`."""
        with contextlib.suppress(FileNotFoundError):
            return msgspec.msgpack.decode(self._chunk_file.read_bytes(), type=Chunk)
        return None

    def begin(self, table: str, stream: bytes) -> Chunk:
        """Begin a chunk; see `ChunkJournal`."""
        migration = self.read()
        chunk = Chunk(
            table, f"move-{migration.id if migration else ''}-{secrets.token_hex(8)}", stream
        )
        write_atomically(self._chunk_file, msgspec.msgpack.encode(chunk))
        return chunk

    def end(self) -> None:
        """End the chunk; see `ChunkJournal`. Not durable: sending it again does no harm."""
        self._chunk_file.unlink(missing_ok=True)

    def _write(self, migration: StoreMigration) -> None:
        write_atomically(self._file, msgspec.json.encode(migration))


def check_not_migrated_away(root: Path, *, has_store: bool) -> None:
    """Raise `OperatorError` when the rows of a service are not in the store of its settings.

    `has_store`: whether the service keeps its rows in the data directory.
    """
    migration = MigrationState(root).read()
    if migration is None:
        return
    match migration.to, migration.is_done, has_store:
        case MigrationTarget.CLICKHOUSE, True, True:
            raise OperatorError(
                f"the rows have moved to ClickHouse ({migration.clickhouse}): "
                f"set HEADRACE_CLICKHOUSE_URL, or move them back with `{_COMMAND} --to embedded`"
            )
        case MigrationTarget.EMBEDDED, True, False:
            raise OperatorError(
                "the rows have moved into the data directory: start without "
                f"HEADRACE_CLICKHOUSE_URL, or move them back with `{_COMMAND} --to clickhouse`"
            )
        case MigrationTarget.EMBEDDED, False, True:
            raise OperatorError(
                "the move of the rows into the data directory is not finished: run "
                f"`{_COMMAND} --to embedded` again, or start with HEADRACE_CLICKHOUSE_URL as before"
            )
        case _:
            return


class InnerLoader(Protocol):
    """Stores the log's records; see `load_loop.LogLoader`."""

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        """Store all records before these offsets."""
        ...


class GatedLoader:
    """A `LogLoader` for ClickHouse that rejects loads while a migration to it is unfinished.

    Until then events stay in the log. So the compared stores do not change, and a batch that the
    embedded store may have stored is found in ClickHouse before it is inserted.
    """

    def __init__(self, loader: InnerLoader, root: Path) -> None:
        self._loader = loader
        self._state = MigrationState(root)
        self._is_gated = True

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        """Store all records before these offsets. Raises `StoreUnavailable` while gated."""
        if self._is_gated:
            migration = self._state.read()
            if (
                migration is not None
                and migration.to is MigrationTarget.CLICKHOUSE
                and not migration.is_done
            ):
                raise StoreUnavailable(
                    "the migration to ClickHouse is not finished: run "
                    f"`{_COMMAND} --to clickhouse` again"
                )
            self._is_gated = False
        return self._loader.load_until(ends)
