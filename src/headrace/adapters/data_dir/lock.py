"""Locks a data directory for one process, and records the owner of the lock in the lock file."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Generator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from headrace.adapters.data_dir.files import create_file_durably
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.base.errors import OperatorError, system_reason

SERVE_COMMAND = "headrace serve"


class LockOwner(Struct, frozen=True):
    """The owner of the lock: its command, and the runtime directory of a service.

    `has_store` is whether a service stores its rows in the data directory, and `has_directory`
    whether its websites and keys are there.
    """

    command: str = SERVE_COMMAND
    runtime: str = ""
    has_store: bool = True
    has_directory: bool = True


PublishRuntimeDir = Callable[[Path], bool]
"""Writes the runtime directory of a service into the lock file; returns whether that succeeded."""


class DataDirLocked(OperatorError):
    """Another process has locked the data directory."""

    def __init__(self, root: Path, owner: LockOwner) -> None:
        by = "another Headrace service" if owner.command == SERVE_COMMAND else f"`{owner.command}`"
        super().__init__(f"the data directory {root} is in use by {by}")
        self.owner = owner


def published_runtime(owner: LockOwner) -> Path:
    """Return the runtime directory of a service that has the lock.

    Raises `OperatorError` where the lock file names none, or that of an earlier service.
    """
    runtime = Path(owner.runtime)
    if not owner.runtime or not runtime.is_dir():
        raise OperatorError(
            "cannot reach the service: it has not published where its socket is; it is starting, "
            "or its disk is full"
        )
    return runtime


@contextlib.contextmanager
def lock_data_dir(
    root: Path, command: str, *, has_store: bool = True, has_directory: bool = True
) -> Generator[PublishRuntimeDir]:
    """Lock a data directory. Raises `DataDirLocked`, without waiting, when another process has it.

    Yields the function with which a service publishes its runtime directory and `has_store`. Where
    the disk is full, the lock file names an earlier owner until that function has succeeded.
    """
    try:
        create_file_durably(lock := DataDirPaths(root).lock)
        descriptor = os.open(lock, os.O_RDWR)
    except OSError as error:
        raise OperatorError(
            f"cannot write to the data directory {root}: {system_reason(error)}"
        ) from error
    try:
        _lock(descriptor, root)
        owner = LockOwner(command, has_directory=has_directory)
        _write_owner(descriptor, owner)
        yield lambda runtime: _write_owner(
            descriptor, replace(owner, runtime=str(runtime), has_store=has_store)
        )
    finally:
        os.close(descriptor)


def is_locked(root: Path) -> bool:
    """Return whether a process has locked a data directory; also where that cannot be read.

    Locks it for a moment where none has.
    """
    try:
        descriptor = os.open(DataDirPaths(root).lock, os.O_RDONLY)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def has_directory_elsewhere(root: Path) -> bool:
    """Return whether a service that runs here has its websites and keys elsewhere.

    The lock is tried only where the lock file says so: elsewhere no start could find it taken.
    """
    paths = DataDirPaths(root)
    return not _read_owner(paths.lock).has_directory and is_locked(root)


def running_service(root: Path) -> LockOwner | None:
    """Return the service that has the lock; None where none runs, or that cannot be read.

    Locks the directory for a moment where its last owner was a service that has ended.
    """
    owner = _find_owner(DataDirPaths(root).lock)
    if owner is None or owner.command != SERVE_COMMAND or not is_locked(root):
        return None
    return owner


def _lock(descriptor: int, root: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DataDirLocked(root, _read_owner(DataDirPaths(root).lock)) from error


def _write_owner(descriptor: int, owner: LockOwner) -> bool:
    """Write the owner; return whether that succeeded: a service also starts on a full disk.

    A file system that copies on write, such as btrfs, cannot even overwrite a file then.
    """
    content = msgspec.json.encode(owner)
    try:
        written = os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
    except OSError:
        return False
    return written == len(content)


def _read_owner(path: Path) -> LockOwner:
    return _find_owner(path) or LockOwner()


def _find_owner(path: Path) -> LockOwner | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=LockOwner)
    except (OSError, msgspec.MsgspecError):
        return None
