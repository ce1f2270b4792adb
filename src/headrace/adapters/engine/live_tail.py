"""What was acknowledged last, of the websites that somebody watches now."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from headrace.adapters.engine.load_loop import LogLoader
from headrace.base.clock import Clock
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import Logger
from headrace.ports.event_log import LogOffset
from headrace.ports.live import KEPT_ITEMS, MAX_STREAMS_PER_CALLER, LiveItem, LiveItems

POLL_S: Final = 0.1
"""Between two looks at the logs, while somebody watches. An item is shown this late at most, beside
what the thread of the loader does at that moment."""

WAIT_S: Final = 10.0
"""How long a follower waits for an item before it asks again."""

LINGER_S: Final = 60.0
"""How long a website is watched after its last follower: a browser that was cut off comes back."""

EVENT: Final = "event"


RunExclusive: TypeAlias = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a callable on the loader's thread."""


class LiveRowReader(Protocol):
    """Reads new rows from the logs: `ingest.load.LiveRows`. Used on the loader's thread alone."""

    def watch(self, websites: Collection[str]) -> None:
        """Watch these websites from now on, and no others."""
        ...

    def read(self, ends: Mapping[str, LogOffset]) -> tuple[Sequence[tuple[str, bytes]], bool]:
        """Return the new rows before these offsets, and whether they are all."""
        ...

    def pass_over(self, ends: Mapping[str, LogOffset]) -> None:
        """Read nothing that is new before these offsets."""
        ...

    def forget_loaded(self) -> None:
        """Everything that was read is loaded."""
        ...


class TailedLoader:
    """A `LogLoader` that lets the tail read what is loaded first; used on the loader's thread."""

    def __init__(self, loader: LogLoader, reader: LiveRowReader, *, log: Logger) -> None:
        self._loader = loader
        self._reader = reader
        self._log = log
        self._deliver: DeliverRows | None = None

    def deliver_to(self, deliver: "DeliverRows") -> None:
        """Pass all rows to a callback from now on, which is called on the loader's thread."""
        self._deliver = deliver

    def watch(self, websites: Collection[str]) -> None:
        """Watch these websites from now on, and no others."""
        self._reader.watch(websites)

    def read(self, ends: Mapping[str, LogOffset]) -> None:
        """Deliver the new rows before these offsets. Never raises: loading must go on.

        Where one of them can never be read, all are passed over: the loader sets it aside.
        """
        try:
            rows, is_complete = self._reader.read(ends)
        except (OSError, StoreUnavailable) as error:
            self._log.warning("live_rows_not_read", reason=str(error))
            return
        except Exception as error:  # noqa: BLE001 - no error may keep rows from being loaded
            self._log.error("live_rows_not_read", exc_info=error)
            self._reader.pass_over(ends)
            rows, is_complete = (), False
        if self._deliver is not None and (rows or not is_complete):
            self._deliver(rows, is_complete)

    def load_until(self, ends: Mapping[str, LogOffset]) -> object:
        """Store all records before these offsets; see `LogLoader`."""
        self.read(ends)
        result = self._loader.load_until(ends)
        self._reader.forget_loaded()
        return result


DeliverRows = Callable[[Sequence[tuple[str, bytes]], bool], None]
"""Receives the rows of websites in order, and whether none is missing before them."""


class _Kept:
    """The newest items of one website."""

    def __init__(self, epoch: str, followed_s: float, watching: asyncio.Task[None]) -> None:
        self.epoch = epoch
        self.followed_s = followed_s
        self.watching = watching
        self.changed = asyncio.Event()
        self._first = 0
        self._items: deque[LiveItem] = deque()

    def append(self, item: LiveItem) -> None:
        self._items.append(item)
        if len(self._items) > KEPT_ITEMS:
            self._items.popleft()
            self._first += 1
        self._wake()

    def restart(self, epoch: str) -> None:
        """Forget all items: nobody knows what is missing before the next one."""
        self.epoch, self._first = epoch, 0
        self._items.clear()
        self._wake()

    def since(self, epoch: str, after: int) -> LiveItems:
        """Return the kept items from a number on; all of them for another epoch."""
        skipped = max(0, after - self._first) if epoch == self.epoch else 0
        return LiveItems(self.epoch, self._first + skipped, tuple(self._items)[skipped:])

    def has_news(self, epoch: str, after: int) -> bool:
        return epoch != self.epoch or after < self._first + len(self._items)

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class LiveTail:
    """Keeps the newest items of watched websites; used from one event loop.

    Nothing runs and nothing is read while nobody watches. `new_epoch` returns a text that no other
    call returns. `on_watched` is called with all watched websites when they change.
    """

    def __init__(
        self,
        loader: TailedLoader,
        *,
        run_exclusive: RunExclusive,
        durable_offsets: Callable[[], Mapping[str, LogOffset]],
        new_epoch: Callable[[], str],
        clock: Clock,
        on_watched: Callable[[Collection[str]], None] = lambda _: None,
        poll_s: float = POLL_S,
        linger_s: float = LINGER_S,
    ) -> None:
        self._loader = loader
        self._run_exclusive = run_exclusive
        self._durable_offsets = durable_offsets
        self._new_epoch = new_epoch
        self._clock = clock
        self._on_watched = on_watched
        self._poll_s = poll_s
        self._linger_s = linger_s
        self._kept: dict[str, _Kept] = {}
        self._streams: Counter[str] = Counter()
        self._poller: asyncio.Task[None] | None = None

    async def follow(self, website: str, epoch: str, after: int) -> LiveItems:
        """Return the items from a number on, or wait for one; see `LiveSource.follow`."""
        kept = self._kept.get(website)
        if kept is None:
            watching = asyncio.create_task(self._watch())
            kept = _Kept(self._new_epoch(), self._clock.monotonic_s(), watching)
            self._kept[website] = kept
        try:
            await asyncio.shield(kept.watching)  # others need it where this follower leaves
        except Exception:
            self._forget(website, kept)  # the next follower tries it again
            raise
        if not kept.has_news(epoch, after):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(kept.changed.wait(), WAIT_S)
        kept.followed_s = self._clock.monotonic_s()
        return kept.since(epoch, after)

    def _forget(self, website: str, kept: _Kept) -> None:
        if self._kept.get(website) is kept:
            del self._kept[website]

    def publish(self, website: str, item: LiveItem) -> None:
        """Append an item to a website that is watched."""
        kept = self._kept.get(website)
        if kept is not None:
            kept.append(item)

    def forget(self, website: str) -> None:
        """Forget the items of a website, some of which were erased; its streams are told."""
        kept = self._kept.get(website)
        if kept is not None:
            kept.restart(self._new_epoch())

    @contextlib.contextmanager
    def count_stream(self, caller: str) -> Generator[bool]:
        """Count a stream of a caller within the context; yields whether it may have one more."""
        is_allowed = self._streams[caller] < MAX_STREAMS_PER_CALLER
        self._streams[caller] += is_allowed
        try:
            yield is_allowed
        finally:
            self._streams[caller] -= is_allowed
            if not self._streams[caller]:
                del self._streams[caller]

    async def close(self) -> None:
        """Stop to read. The load loop must be open still."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        watching = [kept.watching for kept in self._kept.values()]
        await asyncio.gather(*watching, return_exceptions=True)

    async def _watch(self) -> None:
        """Tell the loader's thread what is watched, and read from now on."""
        if self._poller is None:
            self._loader.deliver_to(self._deliver_from_thread(asyncio.get_running_loop()))
            self._poller = asyncio.create_task(self._poll())
        websites = tuple(self._kept)
        self._on_watched(websites)

        def watch() -> None:
            self._read()  # what came before is not of those that are new
            self._loader.watch(websites)

        await self._run_exclusive(watch)

    async def _poll(self) -> None:
        while self._kept:
            await asyncio.sleep(self._poll_s)
            with contextlib.suppress(OSError, StoreUnavailable):  # loads meet and log it, too
                await self._run_exclusive(self._read)
                await self._leave_unfollowed()
        self._poller = None

    async def _leave_unfollowed(self) -> None:
        late_s = self._clock.monotonic_s() - self._linger_s
        left = [website for website, kept in self._kept.items() if kept.followed_s < late_s]
        for website in left:
            del self._kept[website]
        if left:
            await self._watch()

    def _read(self) -> None:
        self._loader.read(dict(self._durable_offsets()))

    def _deliver_from_thread(self, loop: asyncio.AbstractEventLoop) -> DeliverRows:
        def deliver(rows: Sequence[tuple[str, bytes]], is_complete: bool) -> None:
            loop.call_soon_threadsafe(self._deliver, rows, is_complete)

        return deliver

    def _deliver(self, rows: Sequence[tuple[str, bytes]], is_complete: bool) -> None:
        if not is_complete:
            for kept in self._kept.values():
                kept.restart(self._new_epoch())
        for website, body in rows:
            self.publish(website, LiveItem(EVENT, body))
