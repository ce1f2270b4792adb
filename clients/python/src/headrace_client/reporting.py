"""Errors that a program logs or does not catch become items of `/errors`."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from headrace_client.client import Headrace
from headrace_client.context import is_own_work
from headrace_client.delivery.sender import THREAD_NAME
from headrace_client.errors import HeadraceClientError
from headrace_client.items import ErrorFields, exception_fields

_LEVELS = (
    (logging.CRITICAL, "fatal"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)
_NOT_REPORTED = (KeyboardInterrupt, SystemExit)

_logger = logging.getLogger("headrace_client")


class HeadraceHandler(logging.Handler):
    """Reports log records from a level on; an exception in a record gives stack, type and line.

    What the client itself logs, and what its requests log, is left out.
    """

    def __init__(self, client: Headrace, level: int = logging.ERROR) -> None:
        super().__init__(level)
        self._client = client

    def emit(self, record: logging.LogRecord) -> None:
        """Report a record. A full outbox is handled as logging handles errors of a handler."""
        # The name of the thread is for records that a queue brings to another thread.
        if is_own_work() or record.threadName == THREAD_NAME:
            return
        if record.name.partition(".")[0] == "headrace_client":
            return
        try:
            self._client.errors(record.getMessage(), **_record_fields(record))
        except Exception:  # noqa: BLE001 - logging never raises into the program
            self.handleError(record)


def _record_fields(record: logging.LogRecord) -> ErrorFields:
    error = record.exc_info[1] if record.exc_info else None
    fields: ErrorFields = {"filename": record.pathname[-2048:], "lineno": record.lineno}
    if error is not None:
        fields.update(exception_fields(error))
    fields["level"] = next((name for level, name in _LEVELS if record.levelno >= level), "debug")
    fields["timestamp"] = int(record.created * 1000)
    return fields


def report_uncaught(client: Headrace) -> Callable[[], None]:
    """Report exceptions that end the program or a thread, before they are printed as usual.

    Returns a function that ends this.
    """
    before, before_in_threads = sys.excepthook, threading.excepthook
    is_ended = False

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if not is_ended:
            _report(client, error)
        before(kind, error, traceback)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None and not is_ended:
            _report(client, arguments.exc_value)
        before_in_threads(arguments)

    def restore() -> None:
        nonlocal is_ended
        is_ended = True  # other hooks may be around these, and call them
        if sys.excepthook is hook:
            sys.excepthook = before
        if threading.excepthook is thread_hook:
            threading.excepthook = before_in_threads

    sys.excepthook, threading.excepthook = hook, thread_hook
    return restore


def _report(client: Headrace, error: BaseException) -> None:
    if isinstance(error, _NOT_REPORTED):
        return
    try:
        client.errors(error, level="fatal")
    except HeadraceClientError as failure:
        _logger.error("an uncaught exception is not reported: %s", failure)  # noqa: TRY400
