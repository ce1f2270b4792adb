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

from headrace.adapters.data_dir.files import write_whole
from headrace.adapters.store.clickhouse.address import ClickHouseAddress
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.model.migration import Target
from headrace.ports.event_log import LogPosition

_DIRECTORY: Final = "moving"
_COMMAND: Final = "headrace migrate-store"


class Move(Struct, frozen=True):
    """A move: its name for tokens, where to, which ClickHouse is meant, and whether it is done."""

    id: str
    to: Target
    clickhouse: str
    is_done: bool = False


class Piece(Struct, frozen=True):
    """Rows on their way: the table's name, a token of their own, and an Arrow IPC stream."""

    table: str
    token: str
    stream: bytes


def name_of(address: ClickHouseAddress) -> str:
    """Return what tells a store of ClickHouse from others; its hosts and users may change."""
    return f"{address.database} of {address.cluster}" if address.cluster else address.database


class MoveDesk:
    """Reads and writes what a data directory knows of a move; a `PieceDesk`, too."""

    def __init__(self, root: Path) -> None:
        self._directory = root / _DIRECTORY
        self._file = self._directory / "move.json"
        self._piece = self._directory / "piece"

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """Keep other commands from moving. Raises `OperatorError`."""
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            with (self._directory / "lock").open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
        except BlockingIOError:
            raise OperatorError(f"another `{_COMMAND}` runs already") from None

    def read(self) -> Move | None:
        """Return the last move; None where there was none. Raises `OperatorError`."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Move)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise OperatorError(f"{self._file} cannot be read: {error}") from error

    def start(self, to: Target, clickhouse: str) -> Move:
        """Note that a move begins, durably. What another one had under way is forgotten."""
        move = Move(secrets.token_hex(8), to, clickhouse)
        self._piece.unlink(missing_ok=True)
        self._write(move)
        return move

    def note_done(self, move: Move) -> None:
        """Note durably that every row has moved."""
        self._write(msgspec.structs.replace(move, is_done=True))

    def under_way(self) -> Piece | None:
        """Return the piece that was begun; see `PieceDesk`."""
        with contextlib.suppress(FileNotFoundError):
            return msgspec.msgpack.decode(self._piece.read_bytes(), type=Piece)
        return None

    def begin(self, table: str, stream: bytes) -> Piece:
        """Begin a piece; see `PieceDesk`."""
        move = self.read()
        piece = Piece(table, f"move-{move.id if move else ''}-{secrets.token_hex(8)}", stream)
        write_whole(self._piece, msgspec.msgpack.encode(piece))
        return piece

    def end(self) -> None:
        """End the piece; see `PieceDesk`. To send it again would do no harm."""
        self._piece.unlink(missing_ok=True)

    def _write(self, move: Move) -> None:
        write_whole(self._file, msgspec.json.encode(move))


def check_moves(root: Path, *, has_store: bool) -> None:
    """Refuse to start a service whose rows are elsewhere, with `OperatorError`.

    `has_store` tells that it would keep its rows in the data directory.
    """
    move = MoveDesk(root).read()
    if move is None:
        return
    match move.to, move.is_done, has_store:
        case Target.CLICKHOUSE, True, True:
            raise OperatorError(
                f"the rows have moved to ClickHouse ({move.clickhouse}): set HEADRACE_STORE, or "
                f"bring them back with `{_COMMAND} --to embedded`"
            )
        case Target.EMBEDDED, True, False:
            raise OperatorError(
                "the rows have moved into the data directory: start without HEADRACE_STORE, or "
                f"move them to ClickHouse again with `{_COMMAND} --to clickhouse`"
            )
        case Target.EMBEDDED, False, True:
            raise OperatorError(
                "the move of the rows into the data directory is not finished: run "
                f"`{_COMMAND} --to embedded` again, or start with HEADRACE_STORE as before"
            )
        case _:
            return


class Loads(Protocol):
    """What stores the log's records: see `load_loop.Loads`."""

    def load_until(self, ends: Mapping[str, LogPosition]) -> object:
        """Store everything before these places."""
        ...


class HeldLoads:
    """A `Loads` into ClickHouse that waits until the rows of before have all moved there.

    Until then events stay in the log. So what is compared stands still, and a batch that was begun
    in the embedded store is found in ClickHouse if it was stored.
    """

    def __init__(self, loader: Loads, root: Path) -> None:
        self._loader = loader
        self._desk = MoveDesk(root)
        self._is_held = True

    def load_until(self, ends: Mapping[str, LogPosition]) -> object:
        """Store everything before these places; raises `StoreUnavailable` while it has to wait."""
        if self._is_held:
            move = self._desk.read()
            if move is not None and move.to is Target.CLICKHOUSE and not move.is_done:
                raise StoreUnavailable(
                    f"the rows of before have not all moved to ClickHouse: run `{_COMMAND} --to "
                    "clickhouse` once more"
                )
            self._is_held = False
        return self._loader.load_until(ends)
