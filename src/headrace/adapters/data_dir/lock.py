"""Holds a data directory for one command, and tells the others who holds it."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Generator
from pathlib import Path

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.paths import DataPlaces
from headrace.base.errors import OperatorError

SERVE = "headrace serve"


class Holder(Struct, frozen=True):
    """Who holds a data directory: the command, and where a service keeps its sockets.

    `has_store` tells that a service keeps its rows in the data directory.
    """

    command: str = SERVE
    runtime: str = ""
    has_store: bool = True


TellRuntime = Callable[[Path], None]


class DataHeld(OperatorError):
    """Somebody else holds the data directory."""

    def __init__(self, root: Path, holder: Holder) -> None:
        by = "another Headrace service" if holder.command == SERVE else f"`{holder.command}`"
        super().__init__(f"the data directory {root} is in use by {by}")
        self.holder = holder


@contextlib.contextmanager
def hold_data(root: Path, command: str, *, has_store: bool = True) -> Generator[TellRuntime]:
    """Hold a data directory. Raises `DataHeld` at once when somebody else does.

    Gives what a service tells the others with where it has its socket; `has_store` is told, too.
    """
    try:
        descriptor = os.open(DataPlaces(root).lock, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise OperatorError(
            f"cannot write to the data directory {root}: {error.strerror}"
        ) from error
    try:
        _lock(descriptor, root)
        _tell(descriptor, Holder(command))
        yield lambda runtime: _tell(descriptor, Holder(command, str(runtime), has_store))
    finally:
        os.close(descriptor)


def _lock(descriptor: int, root: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DataHeld(root, _holder(DataPlaces(root).lock)) from error


def _tell(descriptor: int, holder: Holder) -> None:
    """Write who it is; a full disk is no reason not to begin."""
    with contextlib.suppress(OSError):
        content = msgspec.json.encode(holder)
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))


def _holder(path: Path) -> Holder:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return Holder()
