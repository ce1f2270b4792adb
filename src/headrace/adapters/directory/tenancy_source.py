"""The directory for the hot path: a snapshot in memory that a background task refreshes."""

import asyncio
import contextlib
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headrace.base.clock import Clock
from headrace.base.errors import DirectoryUnavailable, OperatorError
from headrace.base.logs import Logger
from headrace.model.tenancy import TenancySnapshot
from headrace.ports.directory import ChangeMarker, Directory


class PollingTenancySource:
    """The `LatestTenancySource` port over a directory; used from one event loop.

    Polls the directory's revision every `poll_interval_s` and reads a new snapshot when it changed,
    or when the directory can be read again.
    All reads run in one thread, one at a time. While reads fail, the last snapshot is used for up
    to `max_staleness_s`.
    """

    def __init__(
        self,
        directory: Directory,
        *,
        clock: Clock,
        log: Logger,
        max_staleness_s: float,
        poll_interval_s: float = 1.0,
        refresh_timeout_s: float = 5.0,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._max_staleness_s = max_staleness_s
        self._log = log
        self._poll_interval_s = poll_interval_s
        self._refresh_timeout_s = refresh_timeout_s
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="directory")
        self._read_lock = asyncio.Lock()
        self._tenancy: TenancySnapshot | None = None
        self._change_marker: ChangeMarker = ()
        self._is_stale = False
        self._read_at_s = 0.0
        self._next_read: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_readable = True

    async def start(self) -> None:
        """Read the first snapshot and start polling. Raises `OperatorError` if the read fails."""
        loop = asyncio.get_running_loop()
        self._change_marker = self._directory.change_marker()
        self._tenancy = await loop.run_in_executor(self._thread, self._directory.tenancy)
        self._read_at_s = self._clock.monotonic_s()
        self._start_task(self._poll())

    async def close(self) -> None:
        """Stop polling; waits for a running read. May be called twice."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)

    def current(self) -> TenancySnapshot:
        """Return the snapshot without I/O; call `start` before.

        Raises `DirectoryUnavailable` when no read succeeded for `max_staleness_s`.
        """
        if self._is_stale:
            raise DirectoryUnavailable("websites and keys have not been readable for too long")
        return self._tenancy or self._require_snapshot()  # each request calls this

    async def is_usable(self) -> bool:
        """Return whether the snapshot is recent enough to be used. Never raises."""
        return not self._is_stale

    def is_latest(self) -> bool:
        """Return whether the file of the directory is the one that was read; see the port."""
        return self._directory.change_marker() == self._change_marker

    async def latest(self) -> TenancySnapshot:
        """Return a snapshot with every change of this machine before the call; see the port."""
        if not self.is_latest():
            with contextlib.suppress(DirectoryUnavailable):
                return await self.refreshed()
        return self.current()

    async def refreshed(self) -> TenancySnapshot:
        """Return a snapshot with every change committed before the call; see the port.

        A running read may have begun before the change, so concurrent callers share the next one.
        """
        read = self._next_read
        if read is None:
            read = self._next_read = self._start_task(self._read())
        # Unlike wait_for: neither the timeout nor a cancelled caller cancels the shared read.
        await asyncio.wait((read,), timeout=self._refresh_timeout_s)
        if not read.done() or not self._is_readable:
            raise DirectoryUnavailable("websites and keys cannot be looked up now")
        return self.current()

    def _require_snapshot(self) -> TenancySnapshot:
        if self._tenancy is None:
            raise RuntimeError("the tenancy source was not started")
        return self._tenancy

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._poll_interval_s)
            with contextlib.suppress(DirectoryUnavailable):
                await self.refreshed()
            age_s = self._clock.monotonic_s() - self._read_at_s
            self._record_staleness(is_stale=age_s > self._max_staleness_s)

    async def _read(self) -> None:
        async with self._read_lock:
            self._next_read = None
            loop = asyncio.get_running_loop()
            change_marker = self._directory.change_marker()
            try:
                self._tenancy = await loop.run_in_executor(self._thread, self._read_if_changed)
            except OperatorError as error:
                self._record_readability(readable=False, reason=str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the snapshot is an old one
                self._record_readability(
                    readable=False, reason=type(error).__name__, exc_info=error
                )
            else:
                self._change_marker = change_marker
                self._read_at_s = self._clock.monotonic_s()
                self._record_staleness(is_stale=False)
                self._record_readability(readable=True)

    def _read_if_changed(self) -> TenancySnapshot:
        snapshot = self._require_snapshot()
        # After a failure a replica may have taken over, with other changes up to this revision.
        if self._is_readable and self._directory.revision() == snapshot.revision:
            return snapshot
        read = self._directory.tenancy()
        return snapshot if read == snapshot else read

    def _record_staleness(self, *, is_stale: bool) -> None:
        if is_stale and not self._is_stale:
            self._log.error("directory_stale", good_for_s=self._max_staleness_s)
        self._is_stale = is_stale

    def _record_readability(self, *, readable: bool, **cause: object) -> None:
        """Log the first failed and the first successful read, not every one."""
        if readable and not self._is_readable:
            self._log.info("directory_readable_again")
        elif not readable and self._is_readable:
            self._log.error("directory_unreadable", **cause)
        self._is_readable = readable
