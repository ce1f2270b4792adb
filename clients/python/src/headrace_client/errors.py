"""Every error that the client raises, as one tree.

HeadraceClientError
  InvalidItem           the item cannot be written as JSON; nothing was kept
  ClientClosed          the client was closed before the call
  OutboxUnavailable     the outbox cannot be opened or written; nothing was kept
    OutboxFull          it has reached its limit, or its disk is full
  QueryFailed           a query without a result
    QueryRefused        the same query fails again; carries status, code and message
    QueryUnavailable    try later; `retry_after_s` is set where the service named a time
"""

from __future__ import annotations


class HeadraceClientError(Exception):
    """The base class of all errors that the client raises."""


class InvalidItem(HeadraceClientError, ValueError):
    """The item cannot be written as JSON, or a field has a value that is never valid."""


class ClientClosed(HeadraceClientError):
    """The client was closed before the call."""


class OutboxUnavailable(HeadraceClientError):
    """The outbox cannot be opened, read or written."""


class OutboxFull(OutboxUnavailable):
    """The outbox has reached its limit, or its disk is full."""


class QueryFailed(HeadraceClientError):
    """A query without a result. `status` is 0 where no response came."""

    def __init__(self, message: str, *, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class QueryRefused(QueryFailed):
    """The service refused the query: the same query fails again."""


class QueryUnavailable(QueryFailed):
    """The service cannot answer now, or the rate limit is reached."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code)
        self.retry_after_s = retry_after_s
