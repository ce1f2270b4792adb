"""The client for asyncio: the same outbox and the same sender, without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace_client import items, queries
from headrace_client.client import Headrace
from headrace_client.delivery.forks import ForkAware, prepare_for_forks
from headrace_client.errors import ClientClosed, HeadraceClientError, OutboxFull
from headrace_client.items import Item
from headrace_client.options import ClientOptions, Stats
from headrace_client.query_bodies import (
    FunnelOptions,
    QueryOptions,
    RetentionOptions,
    StandardOptions,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class _Waiting(NamedTuple):
    """The items of one call, and the future that is done when they are in the outbox."""

    items: Sequence[Item]
    future: asyncio.Future[bool]


_Append = Callable[[Sequence[_Waiting]], Sequence[bool | BaseException]]


class AsyncHeadrace(ForkAware):
    """`Headrace` for asyncio; `client` is that client, for code that is not asynchronous.

    An await returns when the item is in the outbox. Calls of an event loop that wait at the same
    time share a transaction. A call that is cancelled may have reported its item or not.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        outbox: str | os.PathLike[str] | None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self.client = Headrace(url, key, outbox=outbox, **options)
        self._is_closed = False
        self._begin()
        prepare_for_forks(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._writers: dict[asyncio.AbstractEventLoop, _Writer] = {}
        self._executor = ThreadPoolExecutor(1, "headrace-outbox")

    def after_fork_in_child(self) -> None:
        """Begin without the threads and tasks of the parent."""
        self._begin()

    async def track(
        self,
        name: str,
        properties: Mapping[str, object] | None = None,
        **fields: Unpack[items.EventFields],
    ) -> str:
        """Report an event and return its id. Raises `InvalidItem`, `OutboxUnavailable`."""
        return await self._add(self.client.items.event(name, properties, fields))

    async def track_many(self, events: Iterable[Mapping[str, object]]) -> list[str]:
        """Report many events at once, all or none, and return their ids."""
        made = [self.client.items.event_of(one) for one in events]
        await self._write(made)
        return [one.event_id for one in made]

    async def page_view(
        self,
        path: str,
        properties: Mapping[str, object] | None = None,
        **fields: Unpack[items.PageViewFields],
    ) -> str:
        """Report a page view and return its id."""
        return await self._add(self.client.items.page_view(path, properties, fields))

    async def vitals(
        self, metric_name: str, metric_value: float, **fields: Unpack[items.ItemFields]
    ) -> str:
        """Report a web vital and return its id."""
        return await self._add(self.client.items.vital(metric_name, metric_value, fields))

    async def errors(self, error: BaseException | str, **fields: Unpack[items.ErrorFields]) -> str:
        """Report an error and return its id."""
        return await self._add(self.client.items.error(error, fields))

    async def identify(
        self,
        profile_id: str,
        traits: Mapping[str, object] | None = None,
        **fields: Unpack[items.ItemFields],
    ) -> str:
        """Report whose account a visitor has, and return the id."""
        return await self._add(self.client.items.identification(profile_id, traits, fields))

    async def query(
        self,
        query: Mapping[str, object],
        *,
        website_id: str | None = None,
        **options: Unpack[QueryOptions],
    ) -> queries.Result:
        """Run a custom query and return its rows.

        The conversions of the result block: call them by `asyncio.to_thread`.
        """
        return await asyncio.to_thread(self.client.query, query, website_id=website_id, **options)

    async def funnel(
        self,
        steps: Sequence[Mapping[str, object]],
        *,
        website_id: str | None = None,
        **options: Unpack[FunnelOptions],
    ) -> queries.Result:
        """Count who took each step within the window of the first."""
        return await asyncio.to_thread(self.client.funnel, steps, website_id=website_id, **options)

    async def retention(
        self,
        first: Mapping[str, object],
        returning: Mapping[str, object],
        *,
        granularity: str,
        periods: int,
        website_id: str | None = None,
        **options: Unpack[RetentionOptions],
    ) -> queries.Result:
        """Count who of each cohort of a first event came back in later periods."""
        return await asyncio.to_thread(
            self.client.retention,
            first,
            returning,
            granularity=granularity,
            periods=periods,
            website_id=website_id,
            **options,
        )

    async def standard(
        self,
        types: Sequence[str],
        *,
        website_id: str | None = None,
        **options: Unpack[StandardOptions],
    ) -> Mapping[str, Any]:
        """Run standard queries, and return their results by type."""
        return await asyncio.to_thread(
            self.client.standard, types, website_id=website_id, **options
        )

    async def flush(self, timeout_s: float = 30.0) -> bool:
        """Send what is in the outbox now, and wait. Return whether nothing of it waits."""
        return await asyncio.to_thread(self.client.flush, timeout_s)

    async def close(self, timeout_s: float = 5.0) -> bool:
        """Flush for at most this long and stop. Return whether the outbox is empty."""
        self._is_closed = True
        await self._writer().finish()
        is_empty = await asyncio.to_thread(self.client.close, timeout_s)
        self._executor.shutdown(wait=False)
        return is_empty

    async def stats(self) -> Stats:
        """Count what is in the outbox, and what became of the rest."""
        return await asyncio.to_thread(self.client.stats)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _add(self, item: Item) -> str:
        return item.event_id if await self._write((item,)) else ""

    async def _write(self, made: Sequence[Item]) -> bool:
        if self._is_closed:
            raise ClientClosed("the client was closed")
        return await self._writer().write(made)

    def _writer(self) -> _Writer:
        """Return the writer of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._writers:
                self._writers = {k: v for k, v in self._writers.items() if not k.is_closed()}
                self._writers[loop] = _Writer(loop, self._executor, self._append)
            return self._writers[loop]

    def _append(self, waiting: Sequence[_Waiting]) -> Sequence[bool | BaseException]:
        """Write all in one transaction, or each in its own where not all fit."""
        if len(waiting) > 1:
            try:
                self.client.append([item for one in waiting for item in one.items])
            except OutboxFull:
                pass
            else:
                return [True] * len(waiting)
        return [self._append_one(one) for one in waiting]

    def _append_one(self, one: _Waiting) -> bool | BaseException:
        try:
            return self.client.add(one.items)
        except HeadraceClientError as error:
            return error


class _Writer:
    """Writes the items of the calls of one event loop, in a thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, executor: ThreadPoolExecutor, append: _Append
    ) -> None:
        self._loop = loop
        self._executor = executor
        self._append = append
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Future[Sequence[bool | BaseException]] | None = None

    async def write(self, made: Sequence[Item]) -> bool:
        """Return whether the items are in the outbox, or were dropped."""
        one = _Waiting(made, self._loop.create_future())
        self._waiting.append(one)
        if self._writing is None:
            self._write_waiting()
        return await one.future

    async def finish(self) -> None:
        """Wait for the calls of this event loop."""
        while self._writing is not None:
            await asyncio.wait((self._writing,))

    def _write_waiting(self) -> None:
        """Write what waits. No task: a program that cancels all tasks may report after that."""
        waiting, self._waiting = self._waiting, []
        try:
            self._writing = self._loop.run_in_executor(self._executor, self._append, waiting)
        except RuntimeError:  # another event loop has closed the client
            for one in waiting:
                _settle(one.future, ClientClosed("the client was closed"))
        else:
            self._writing.add_done_callback(partial(self._finish, waiting))

    def _finish(
        self, waiting: Sequence[_Waiting], writing: asyncio.Future[Sequence[bool | BaseException]]
    ) -> None:
        self._writing = None
        error = writing.exception()
        outcomes = writing.result() if error is None else [error] * len(waiting)
        for one, outcome in zip(waiting, outcomes, strict=True):
            _settle(one.future, outcome)
        if self._waiting:
            self._write_waiting()


def _settle(future: asyncio.Future[bool], outcome: bool | BaseException) -> None:
    if future.done():  # cancelled
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
