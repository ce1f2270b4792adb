"""The client: what is reported is in the outbox when a call returns, and is sent from there."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import httpx

from headrace_client import items
from headrace_client.delivery.database import Database
from headrace_client.delivery.outbox import Outbox, RefusedItem
from headrace_client.delivery.poster import ItemPoster
from headrace_client.delivery.process_lock import ProcessLock
from headrace_client.delivery.sender import Sender
from headrace_client.errors import ClientClosed, OutboxFull, OutboxUnavailable
from headrace_client.items import Item, ItemMaker
from headrace_client.options import Stats, check_arguments, split_address
from headrace_client.queries import QueryClient
from headrace_client.query_methods import QueryMethods

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_FLUSH_POLL_S = 0.02
_EXIT_TIMEOUT_S = 5.0
_STOP_TIMEOUT_S = 0.5  # for a request that is on its way; without its response it is repeated
_TIMEOUT = httpx.Timeout(30.0, connect=5.0)

_logger = logging.getLogger("headrace_client")


class Headrace(QueryMethods):
    """Reports events, web vitals and errors, and queries them. Safe to use from many threads.

    An item is in the outbox when a call returns: a file that survives the process. A thread sends
    it, as often as needed; its id makes repeats harmless. Processes may share the file, and after a
    fork the child may use the client. `outbox=None` keeps items in memory until the process ends.

    `synchronous="normal"` survives the end of the process, also by `kill -9`; `"full"` flushes the
    disk for each call, and survives the loss of power too. `website_id` is the website of items and
    queries that name none. `when_full="drop"` counts an item that does not fit and logs it, where
    `"raise"` raises `OutboxFull`. `on_refused` is called by the sending thread with each item that
    the service refuses for good. `make_http_client` replaces the httpx client, for proxies,
    certificates and timeouts; a request ends after twice the read timeout of that client.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        outbox: str | os.PathLike[str] | None,
        website_id: str | None = None,
        synchronous: Literal["normal", "full"] = "normal",
        max_outbox_bytes: int = 256 * 1024 * 1024,
        when_full: Literal["raise", "drop"] = "raise",
        max_batch_items: int = 500,
        linger_s: float = 0.2,
        busy_timeout_s: float = 10.0,
        on_refused: Callable[[RefusedItem], object] | None = None,
        make_http_client: Callable[[], httpx.Client] | None = None,
    ) -> None:
        url = url.strip().rstrip("/")
        key = None if key is None else key.strip()
        check_arguments(url, key, website_id, synchronous)
        url, authorization = split_address(url, key)
        make_http_client = make_http_client or _make_http_client
        self.items = ItemMaker(website_id)
        self._drops = when_full == "drop"
        self._dropped = 0
        self._dropped_lock = threading.RLock()
        path = None if outbox is None else Path(outbox).absolute()
        self._database = Database(
            path,
            synchronous=synchronous,
            max_bytes=max_outbox_bytes,
            busy_timeout_s=busy_timeout_s,
        )
        self._outbox = Outbox(self._database)
        has_items = self._outbox.newest_id() > 0
        self._sender = Sender(
            self._outbox,
            ItemPoster(url, authorization, make_http_client=make_http_client),
            ProcessLock(path and path.with_name(path.name + ".lock")),
            max_batch_items=max_batch_items,
            linger_s=linger_s,
            on_refused=on_refused,
        )
        query_client = QueryClient(url, authorization, make_http_client=make_http_client)
        super().__init__(query_client, website_id)
        atexit.register(self._close_at_exit)
        if has_items:
            self._sender.notify()

    def track(
        self,
        name: str,
        properties: Mapping[str, object] | None = None,
        **fields: Unpack[items.EventFields],
    ) -> str:
        """Report an event and return its id. Raises `InvalidItem`, `OutboxUnavailable`."""
        return self._add(self.items.event(name, properties, fields))

    def track_many(self, events: Iterable[Mapping[str, object]]) -> list[str]:
        """Report many events at once, all or none, and return their ids.

        An event is a mapping with `name`, and maybe `properties` and the fields of `track`.
        """
        made = [self.items.event_of(one) for one in events]
        self.add(made)
        return [one.event_id for one in made]

    def page_view(
        self,
        path: str,
        properties: Mapping[str, object] | None = None,
        **fields: Unpack[items.PageViewFields],
    ) -> str:
        """Report a page view, an event with the name `screen_view`, and return its id."""
        return self._add(self.items.page_view(path, properties, fields))

    def vitals(
        self, metric_name: str, metric_value: float, **fields: Unpack[items.ItemFields]
    ) -> str:
        """Report a web vital (FCP, LCP, CLS, INP, TTFB, FPS), and return its id."""
        return self._add(self.items.vital(metric_name, metric_value, fields))

    def errors(self, error: BaseException | str, **fields: Unpack[items.ErrorFields]) -> str:
        """Report an error and return its id.

        An exception gives type, stack, file and line, where the fields do not.
        """
        return self._add(self.items.error(error, fields))

    def identify(
        self,
        profile_id: str,
        traits: Mapping[str, object] | None = None,
        **fields: Unpack[items.ItemFields],
    ) -> str:
        """Report whose account a visitor (`anonymous_id`, `session_id`) has; return the id."""
        return self._add(self.items.identification(profile_id, traits, fields))

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Send what is in the outbox now, and wait for it. Return whether nothing of it waits.

        Sending again after a failure goes on in the background. What was refused does not wait.
        Within `on_refused` nothing can be sent meanwhile, so that it does not wait.
        """
        deadline = time.monotonic() + (0.0 if self._sender.is_this_thread else timeout_s)
        newest = self._outbox.newest_id()
        with self._sender.hurry():
            while self._outbox.has_any_until(newest):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_FLUSH_POLL_S)
        return True

    def close(self, timeout_s: float = 5.0) -> bool:
        """Flush for at most this long and stop. Return whether the outbox is empty.

        What is left stays in a file, and is sent by the next client that opens it.
        """
        if self._database.is_closed:
            return True
        atexit.unregister(self._close_at_exit)
        deadline = time.monotonic() + timeout_s
        try:
            is_empty = self.flush(timeout_s)
        except ClientClosed:  # another thread was faster
            return True
        finally:
            self._sender.stop(max(deadline - time.monotonic(), _STOP_TIMEOUT_S))
            self._close_outbox()
            self.query_client.close()
        return is_empty

    def stats(self) -> Stats:
        """Count what is in the outbox, and what became of the rest."""
        counts = self._outbox.counts()
        return Stats(*counts, self._dropped, self._sender.failures, self._sender.last_error)

    def refused(self, limit: int = 100) -> list[RefusedItem]:
        """Return items that the service refused for good, newest first."""
        return self._outbox.refused(limit)

    def requeue_refused(self) -> int:
        """Send all refused items again, when their cause is gone; return how many."""
        count = self._outbox.requeue_refused()
        self._sender.notify()
        return count

    def delete_refused(self) -> int:
        """Forget all refused items; return how many."""
        return self._outbox.delete_refused()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, made: Sequence[Item]) -> None:
        """Write items to the outbox, all or none. Raises `OutboxUnavailable`."""
        self._outbox.append(made)
        self._sender.notify()

    def add(self, made: Sequence[Item]) -> bool:
        """Write items to the outbox, or drop them where that is wanted. Return which of both."""
        try:
            self.append(made)
        except OutboxFull as error:
            if not self._drops:
                raise
            self._count_dropped(len(made), error)
            return False
        return True

    def _add(self, item: Item) -> str:
        return item.event_id if self.add((item,)) else ""

    def _close_outbox(self) -> None:
        try:
            self._outbox.close()
        except OutboxUnavailable as error:
            _logger.error("items that were not sent may be lost: %s", error)  # noqa: TRY400

    def _count_dropped(self, count: int, error: OutboxFull) -> None:
        with self._dropped_lock:
            before, self._dropped = self._dropped, self._dropped + count
        if before.bit_length() != self._dropped.bit_length():  # a line each time it has doubled
            _logger.error("%d items were dropped: %s", self._dropped, error)

    def _close_at_exit(self) -> None:
        if self._sender.is_running:
            self.close(_EXIT_TIMEOUT_S)
        else:
            self._database.close()


def _make_http_client() -> httpx.Client:
    return httpx.Client(timeout=_TIMEOUT)
