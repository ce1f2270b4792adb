"""The thread that sends what an outbox has, in one of the processes that use the outbox."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from headrace_client.context import own_work
from headrace_client.delivery.backoff import Backoff
from headrace_client.delivery.forks import ForkAware, prepare_for_forks
from headrace_client.delivery.in_flight import InFlight, now_ms
from headrace_client.delivery.outbox import Outbox, RefusedItem
from headrace_client.delivery.poster import Failed, ItemPoster, Refused, Stored, TooLarge
from headrace_client.delivery.process_lock import ProcessLock
from headrace_client.delivery.wakeup import Wakeup
from headrace_client.errors import ClientClosed

THREAD_NAME = "headrace-sender"
_INVALID = 400
_POLL_S = 1.0  # how soon items of other processes, and the end of their sender, are noticed
_MAX_BATCH_BYTES = 1024 * 1024
_MAX_UNKNOWN_MS = 6 * 86_400_000
"""The service remembers ids for seven days; a repeat after that could be stored twice."""

_logger = logging.getLogger("headrace_client")


class Sender(ForkAware):
    """Sends in the background while this process has the lock of the outbox."""

    def __init__(
        self,
        outbox: Outbox,
        poster: ItemPoster,
        lock: ProcessLock,
        *,
        max_batch_items: int,
        linger_s: float,
        on_refused: Callable[[RefusedItem], object] | None,
    ) -> None:
        self._outbox = outbox
        self._poster = poster
        self._lock = lock
        self._max_batch_items = max_batch_items
        self._batch_items = max_batch_items
        self._linger_s = linger_s
        self._on_refused = on_refused
        self._backoff = Backoff()
        self.last_error = ""
        self._begin()
        prepare_for_forks(self)

    def _begin(self) -> None:
        self._hurry_lock = threading.RLock()
        self._is_claimed = threading.Lock()  # held from the start of the thread on
        self._thread: threading.Thread | None = None
        self._arrived = Wakeup()
        self._hurry = Wakeup()
        self._hurrying = 0
        self._stopping = threading.Event()

    def after_fork_in_child(self) -> None:
        """Leave lock and connections to the parent; a thread starts with the next item."""
        was_stopping = self._stopping.is_set()
        self._begin()
        if was_stopping:
            self._stopping.set()
        self._lock.release()
        self._poster.forget()

    @property
    def is_running(self) -> bool:
        """Whether this process has a sending thread."""
        return self._thread is not None

    @property
    def is_this_thread(self) -> bool:
        """Whether the caller is the sending thread, as in `on_refused`: it must not wait for it."""
        return threading.current_thread() is self._thread

    @property
    def failures(self) -> int:
        """The number of failed requests since the last one that did not fail."""
        return self._backoff.failures

    def notify(self) -> None:
        """Send new items soon. Starts the thread where this process has none."""
        self._arrived.set()
        if self._thread is None:
            self._start()

    @contextmanager
    def hurry(self) -> Generator[None]:
        """Send without lingering during the block; also ends a pause, once, but no Retry-After."""
        with self._hurry_lock:
            self._hurrying += 1
        self._hurry.set()
        self.notify()
        try:
            yield
        finally:
            with self._hurry_lock:
                self._hurrying -= 1

    def stop(self, timeout_s: float) -> None:
        """End the thread after its request, and wait for it for this long."""
        self._stopping.set()
        self._hurry.set()
        self._arrived.set()
        if self._thread is not None and not self.is_this_thread:
            self._thread.join(min(timeout_s, threading.TIMEOUT_MAX))

    def _start(self) -> None:
        # A signal handler may come here while its thread is in the lines below: the claim is one
        # call of C, and unlike a lock that the thread may take again it lets only one of both on.
        if self._stopping.is_set() or not self._is_claimed.acquire(blocking=False):
            return
        thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends: the next process sends
            self._is_claimed.release()
        else:
            self._thread = thread

    def _run(self) -> None:
        with own_work():
            while not self._stopping.is_set():
                self._step()
            self._poster.close()
            self._lock.release()

    def _step(self) -> None:
        try:
            if self._lock.acquire():
                self._send_next()
            else:
                self._wait_for_items()
        except ClientClosed:
            self._stopping.set()
        except Exception as error:  # noqa: BLE001 - the thread must outlive a full disk
            self._pause(f"{type(error).__name__}: {error}", None)

    def _send_next(self) -> None:
        in_flight = self._outbox.take(max_items=self._batch_items, max_bytes=_MAX_BATCH_BYTES)
        if in_flight is None:
            self._wait_for_items()
        elif now_ms() - in_flight.since_ms > _MAX_UNKNOWN_MS:
            message = "no response for six days: a repeat could be stored twice"
            self._refuse(in_flight, Refused(0, "OUTCOME_UNKNOWN", message, {}))
        else:
            self._send(in_flight)

    def _send(self, in_flight: InFlight) -> None:
        outcome = self._poster.post(in_flight)
        if isinstance(outcome, Failed):
            if not (outcome.is_unknown or in_flight.is_repeat):
                self._outbox.put_back()
            self._pause(outcome.reason, outcome.retry_after_s)
            return
        if isinstance(outcome, Stored):
            self._outbox.remove(in_flight)
            if len(in_flight.ids) < self._batch_items:
                self._linger()
            self._batch_items = min(self._max_batch_items, self._batch_items * 2)
        elif isinstance(outcome, TooLarge):
            self._split(in_flight, Refused(413, "PAYLOAD_TOO_LARGE", outcome.message, {}))
        elif outcome.messages or outcome.status != _INVALID:
            self._refuse(in_flight, outcome)
        else:
            self._split(in_flight, outcome)
        self._backoff.reset()
        self.last_error = ""

    def _split(self, in_flight: InFlight, refusal: Refused) -> None:
        """Send half as many next; one item that is refused alone is the culprit."""
        if len(in_flight.ids) == 1:
            self._refuse(in_flight, refusal)
        else:
            self._batch_items = len(in_flight.ids) // 2
            self._outbox.put_back()

    def _refuse(self, in_flight: InFlight, refusal: Refused) -> None:
        indexes = range(len(in_flight.ids))
        messages = refusal.messages or dict.fromkeys(indexes, refusal.message)
        refused = self._outbox.refuse(in_flight, messages, status=refusal.status, code=refusal.code)
        _logger.error(
            "%d items for %s were refused: %d %s",
            len(refused),
            in_flight.endpoint.value,
            refusal.status,
            refusal.message,
        )
        if self._on_refused is not None:
            for one in refused:
                self._report(self._on_refused, one)

    @staticmethod
    def _report(on_refused: Callable[[RefusedItem], object], one: RefusedItem) -> None:
        try:
            on_refused(one)
        except BaseException:  # also that of sys.exit, which would end the thread without a word
            _logger.exception("on_refused failed")

    def _pause(self, reason: str, retry_after_s: float | None) -> None:
        pause_s = self._backoff.next_pause_s(retry_after_s)
        if not self.last_error:
            _logger.warning("items are not sent, they stay in the outbox: %s", reason)
        self.last_error = reason
        if retry_after_s:
            self._stopping.wait(pause_s)
        else:
            self._hurry.wait(pause_s)

    def _wait_for_items(self) -> None:
        if self._arrived.wait(_POLL_S):
            self._linger()

    def _linger(self) -> None:
        """Wait for more items, which share the next request."""
        self._hurry.wait(0 if self._hurrying else self._linger_s)
