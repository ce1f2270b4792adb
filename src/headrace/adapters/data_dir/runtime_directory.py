"""The directory of a running service's socket and metrics: a short path that its restart finds."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Final

from headrace.base.errors import OperatorError, system_reason
from headrace.base.logs import get_logger

WATCHED_WEBSITES: Final = "watched"
ENGINE_SOCKET: Final = "engine.socket"
MAX_SOCKET_PATH_BYTES: Final = 107
"""The kernel reserves 108 bytes for the path of a socket, with the zero byte at its end."""

_DIGEST_BYTES: Final = 6
_RELATIVE_LENGTH: Final = len(f"/abcdefgh/{ENGINE_SOCKET}")
_GROUP_AND_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@contextlib.contextmanager
def runtime_directory(data: Path, *, temporary: Path | None = None) -> Generator[Path]:
    """Create a private directory for the service that uses a data directory, and remove it at exit.

    Its parent follows from the path of the data directory, so the next start removes what a killed
    service left there. Its own name is new each time, so a dying process of the previous service
    cannot touch its files. Raises `OperatorError`.
    """
    parent = temporary or short_temporary_directory(_temporary_directory())
    path = _path_for(parent, data)
    lock = _open_locked(path)
    try:
        if lock is None:
            get_logger().warning("runtime_directory_taken", path=str(path))
            yield from _make_temporary(parent, prefix="headrace-")
        else:
            _remove_contents(path)
            yield from _make_temporary(path)
    finally:
        if lock is not None:
            with contextlib.suppress(OSError):
                path.rmdir()
            os.close(lock)


def _temporary_directory() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise OperatorError(
            f"{system_reason(error)}: set TMPDIR to a directory that can be written"
        ) from error


def short_temporary_directory(directory: Path) -> Path:
    """Return the directory, or /tmp where the path of a socket within it would be too long."""
    length = len(os.fsencode(_path_for(directory, directory))) + _RELATIVE_LENGTH
    if length <= MAX_SOCKET_PATH_BYTES:
        return directory
    return Path("/tmp")  # noqa: S108 - owner and mode of what is created there are checked


def _make_temporary(parent: Path, *, prefix: str = "") -> Generator[Path]:
    try:
        runtime = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError as error:
        raise OperatorError(
            f"cannot create a directory in {parent}: {system_reason(error)}"
        ) from error
    try:
        yield runtime
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _path_for(parent: Path, data: Path) -> Path:
    digest = hashlib.blake2b(os.fsencode(data.resolve()), digest_size=_DIGEST_BYTES).hexdigest()
    return parent / f"headrace-{os.geteuid()}-{digest}"


def _open_locked(path: Path) -> int | None:
    """Create and lock a directory, and return the lock.

    None where the directory is not private to this user, or a service has locked it: its parent is
    writable for every user, so another user may have created the name first. The lock also keeps
    cleaners of temporary directories (systemd-tmpfiles) from removing it.
    """
    with contextlib.suppress(OSError):
        path.mkdir(mode=0o700)
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    if _is_private(lock) and _try_lock(lock):
        return lock
    os.close(lock)
    return None


def _is_private(directory: int) -> bool:
    found = os.fstat(directory)
    return found.st_uid == os.geteuid() and not found.st_mode & _GROUP_AND_OTHERS


def _try_lock(directory: int) -> bool:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_contents(path: Path) -> None:
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()
