"""Makes what is in a data directory readable by its owner only."""

from collections.abc import Iterator
from pathlib import Path

from headrace.adapters.data_dir.paths import OWN_ENTRIES
from headrace.adapters.data_dir.sqlite_files import SQLITE_SUFFIXES
from headrace.base.logs import get_logger

_GROUP_AND_OTHERS = 0o077


def restrict_access(root: Path) -> None:
    """Take the rights of group and others from the entries of a data directory.

    What is below them cannot be reached then, whatever its mode. The directory itself keeps its
    mode: it may have been created for more than this service. A mode that cannot be changed is
    logged.
    """
    for path in _own_entries(root):
        try:
            mode = path.stat().st_mode
            if mode & _GROUP_AND_OTHERS:
                path.chmod(mode & ~_GROUP_AND_OTHERS & 0o7777)
        except FileNotFoundError:
            continue  # most directories lack some of them
        except OSError as error:
            get_logger().warning("data_not_private", path=str(path), reason=error.strerror)


def _own_entries(root: Path) -> Iterator[Path]:
    for name in OWN_ENTRIES:
        for suffix in ("", *SQLITE_SUFFIXES):
            yield root / f"{name}{suffix}"
