"""Where a running service has its socket and metrics: a short path that its next start knows."""

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

from headrace.base.errors import OperatorError
from headrace.base.telemetry import get_logger

_DIGEST_BYTES: Final = 6
_LENGTH_WITHIN: Final = len("/abcdefgh/engine.socket")
_NOT_OURS_ALONE: Final = stat.S_IRWXG | stat.S_IRWXO


@contextlib.contextmanager
def runtime_directory(data: Path, *, temporary: Path | None = None) -> Generator[Path]:
    """Make a private directory for the service that holds a data directory; it is removed again.

    Its place follows from the data directory, so that the next start removes what a killed service
    left there. Within the place it has a new name each time: what a dying process of the service
    before still does is done elsewhere. Raises `OperatorError`.
    """
    above = temporary or with_short_path(Path(tempfile.gettempdir()))
    place = _place(above, data)
    lock = _take(place)
    try:
        if lock is None:
            get_logger().warning("runtime_directory_taken", place=str(place))
            yield from _made_in(above, prefix="headrace-")
        else:
            _empty(place)
            yield from _made_in(place)
    finally:
        if lock is not None:
            with contextlib.suppress(OSError):
                place.rmdir()
            os.close(lock)


def with_short_path(directory: Path) -> Path:
    """Return a directory for temporary files, or /tmp where a socket's path would be too long."""
    length = len(os.fsencode(_place(directory, directory))) + _LENGTH_WITHIN
    if length <= LONGEST_SOCKET_PATH:
        return directory
    return Path("/tmp")  # noqa: S108 - what is made there is checked


def _made_in(above: Path, *, prefix: str = "") -> Generator[Path]:
    try:
        runtime = Path(tempfile.mkdtemp(prefix=prefix, dir=above))
    except OSError as error:
        raise OperatorError(f"cannot make a directory in {above}: {error.strerror}") from error
    try:
        yield runtime
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _place(above: Path, data: Path) -> Path:
    digest = hashlib.blake2b(os.fsencode(data.resolve()), digest_size=_DIGEST_BYTES).hexdigest()
    return above / f"headrace-{os.geteuid()}-{digest}"


def _take(place: Path) -> int | None:
    """Lock a place and return the lock; None where it is not ours alone, or a service lives in it.

    Everybody may write where it lies, so somebody else may have made what has its name. The lock
    also tells those who clean temporary directories that this one is in use.
    """
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700)
    try:
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    if _is_ours(lock) and _try_lock(lock):
        return lock
    os.close(lock)
    return None


def _is_ours(directory: int) -> bool:
    found = os.fstat(directory)
    return found.st_uid == os.geteuid() and not found.st_mode & _NOT_OURS_ALONE


def _try_lock(directory: int) -> bool:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _empty(place: Path) -> None:
    for left in place.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink()


LONGEST_SOCKET_PATH = 107
"""Bytes. The kernel keeps 108 for the path of a socket, with the zero at its end."""
