"""What a data directory knows of a move of its rows to another store, and what waits for it.

moving/move.json    where to, and whether it is done
moving/piece        the rows on their way; see `store_copy`
moving/lock         held by the command that moves
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
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.model.migration import MigrationTarget
from headrace.ports.event_log import LogOffset

_DIRECTORY: Final = "moving"
_COMMAND: Final = "headrace migrate-store"


class StoreMigration(Struct, frozen=True):
    """A move: its name for tokens, where to, which ClickHouse is meant, and whether it is done."""

    id: str
    to: MigrationTarget
    clickhouse: str
    is_done: bool = False


class Chunk(Struct, frozen=True):
    """Rows on their way: the table's name, a token of their own, and an Arrow IPC stream."""

    table: str
    token: str
    stream: bytes


def clickhouse_identity(address: ClickHouseAddress) -> str:
    """Return what tells a store of ClickHouse from others; its hosts and users may change."""
    return f"{address.database} of {address.cluster}" if address.cluster else address.database


class MigrationState:
    """Reads and writes what a data directory knows of a move; a `ChunkJournal`, too."""

    def __init__(self, root: Path) -> None:
        self._directory = root / _DIRECTORY
        self._file = self._directory / "move.json"
        self._chunk_file = self._directory / "piece"

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Keep other commands from moving. Raises `OperatorError`."""
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            with (self._directory / "lock").open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
        except BlockingIOError:
            raise OperatorError(f"another `{_COMMAND}` runs already") from None

    def read(self) -> StoreMigration | None:
        """Return the last move; None where there was none. Raises `OperatorError`."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=StoreMigration)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise OperatorError(f"{self._file} cannot be read: {error}") from error

    def start(self, to: MigrationTarget, clickhouse: str) -> StoreMigration:
        """Note that a move begins, durably. What another one had under way is forgotten."""
        migration = StoreMigration(secrets.token_hex(8), to, clickhouse)
        self._chunk_file.unlink(missing_ok=True)
        self._write(migration)
        return migration

    def mark_done(self, migration: StoreMigration) -> None:
        """Note durably that every row has moved."""
        self._write(msgspec.structs.replace(migration, is_done=True))

    def pending(self) -> Chunk | None:
        """Return the piece that was begun; see `ChunkJournal`."""
        with contextlib.suppress(FileNotFoundError):
            return msgspec.msgpack.decode(self._chunk_file.read_bytes(), type=Chunk)
        return None

    def begin(self, table: str, stream: bytes) -> Chunk:
        """Begin a piece; see `ChunkJournal`."""
        migration = self.read()
        chunk = Chunk(
            table, f"move-{migration.id if migration else ''}-{secrets.token_hex(8)}", stream
        )
        write_atomically(self._chunk_file, msgspec.msgpack.encode(chunk))
        return chunk

    def end(self) -> None:
        """End the piece; see `ChunkJournal`. To send it again would do no harm."""
        self._chunk_file.unlink(missing_ok=True)

    def _write(self, migration: StoreMigration) -> None:
        write_atomically(self._file, msgspec.json.encode(migration))


def check_not_migrated_away(root: Path, *, has_store: bool) -> None:
    """Refuse to start a service whose rows are elsewhere, with `OperatorError`.

    `has_store` tells that it would keep its rows in the data directory.
    """
    migration = MigrationState(root).read()
    if migration is None:
        return
    match migration.to, migration.is_done, has_store:
        case MigrationTarget.CLICKHOUSE, True, True:
            raise OperatorError(
                f"the rows have moved to ClickHouse ({migration.clickhouse}): "
                f"set HEADRACE_CLICKHOUSE_URL, or "
                f"bring them back with `{_COMMAND} --to embedded`"
            )
        case MigrationTarget.EMBEDDED, True, False:
            raise OperatorError(
                "the rows have moved into the data directory: start without "
                "HEADRACE_CLICKHOUSE_URL, or "
                f"move them to ClickHouse again with `{_COMMAND} --to clickhouse`"
            )
        case MigrationTarget.EMBEDDED, False, True:
            raise OperatorError(
                "the move of the rows into the data directory is not finished: run "
                f"`{_COMMAND} --to embedded` again, or start with HEADRACE_CLICKHOUSE_URL as before"
            )
        case _:
            return


class InnerLoader(Protocol):
    """What stores the log's records: see `load_loop.LogLoader`."""

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        """Store everything before these places."""
        ...


class GatedLoader:
    """A `LogLoader` for ClickHouse that waits until the rows of before have all moved there.

    Until then events stay in the log. So what is compared stands still, and a batch that was begun
    in the embedded store is found in ClickHouse if it was stored.
    """

    def __init__(self, loader: InnerLoader, root: Path) -> None:
        self._loader = loader
        self._state = MigrationState(root)
        self._is_gated = True

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        """Store everything before these places; raises `StoreUnavailable` while it has to wait."""
        if self._is_gated:
            migration = self._state.read()
            if (
                migration is not None
                and migration.to is MigrationTarget.CLICKHOUSE
                and not migration.is_done
            ):
                raise StoreUnavailable(
                    f"the rows of before have not all moved to ClickHouse: run `{_COMMAND} --to "
                    "clickhouse` once more"
                )
            self._is_gated = False
        return self._loader.load_until(ends)
