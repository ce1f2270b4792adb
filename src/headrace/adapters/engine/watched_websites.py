"""The file by which the engine process tells the workers which websites are watched now.

Workers look at it for each refused call, which must cost nothing while nobody watches: no request
over the socket, but the status of one small file.
"""

import contextlib
from collections.abc import Collection
from pathlib import Path

_Status = tuple[int, int, int]


class WatchedWebsites:
    """One file in the runtime directory; it is missing while no website is watched."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._status: _Status | None = None
        self._websites: frozenset[str] = frozenset()

    def write(self, websites: Collection[str]) -> None:
        """Replace the file; readers find the old one or the new. An error leaves the old one."""
        with contextlib.suppress(OSError):
            if not websites:
                self._path.unlink(missing_ok=True)
                return
            unfinished = self._path.with_suffix(".new")
            unfinished.write_text("\n".join(websites))
            unfinished.rename(self._path)

    def has(self, website: str) -> bool:
        """Return whether a website is watched. Reads the file only when it has changed."""
        try:
            found = self._path.stat()
            status = (found.st_ino, found.st_size, found.st_mtime_ns)
            if status != self._status:
                self._websites = frozenset(self._path.read_text().splitlines())
                self._status = status
        except OSError:
            return False
        return website in self._websites
