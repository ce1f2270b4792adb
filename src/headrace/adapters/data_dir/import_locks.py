"""Keeps imports of a website apart from what must not see half of one: exports and erasures.

Locks are of files, so that those of a killed process are released. A process that
waits for a lock has the turn: an import takes its lock again and again, and would pass others
otherwise.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Final

from headrace.base.errors import StoreUnavailable, system_reason

_POLL_S: Final = 0.02
_DIGEST_BYTES: Final = 12


class ImportLocks:
    """Locks in `directory`, for any number of processes and tasks. Raises `StoreUnavailable`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @asynccontextmanager
    async def excluding_imports(self, website_id: str) -> AsyncGenerator[None]:
        """Let no import store rows in a website meanwhile; several may exclude them at once."""
        async with self._locked(website_id, fcntl.LOCK_SH):
            yield

    @asynccontextmanager
    async def importing(self, website_id: str) -> AsyncGenerator[None]:
        """Wait until nothing excludes imports, and let nothing do so meanwhile."""
        async with self._locked(website_id, fcntl.LOCK_EX):
            yield

    @asynccontextmanager
    async def _locked(self, website_id: str, operation: int) -> AsyncGenerator[None]:
        name = "import-" + blake2b(website_id.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        async with AsyncExitStack() as stack:
            async with _file_lock(self._directory / f"{name}.turn", fcntl.LOCK_EX):
                await stack.enter_async_context(
                    _file_lock(self._directory / f"{name}.lock", operation)
                )
            yield


@asynccontextmanager
async def _file_lock(path: Path, operation: int) -> AsyncGenerator[None]:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"cannot open {path}: {system_reason(error)}") from error
    try:
        while not _try_lock(file, operation):  # noqa: ASYNC110 - the kernel notifies no event loop
            await asyncio.sleep(_POLL_S)
        yield
    finally:
        os.close(file)  # releases the lock


def _try_lock(file: int, operation: int) -> bool:
    try:
        fcntl.flock(file, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
