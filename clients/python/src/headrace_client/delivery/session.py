"""Requests that end by a deadline, however slowly their responses arrive.

httpx limits the time between two parts of a response, not that of all: a server that sends a byte
now and then would keep a request for ever, in the head of a response as in its body.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

if TYPE_CHECKING:
    from typing_extensions import Self

_SLOWEST_UPLOAD_BYTES_PER_S = 8 * 1024  # a mobile line at its edge; with less a batch never ends
_CONNECTED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")
_WRONG_SETTINGS = (ValueError, ImportError, OSError, httpx.InvalidURL)
"""What httpx raises for proxies and certificates of the environment that it cannot use."""


class SessionUnavailable(Exception):
    """No request can be made; the message says why."""


class Response(NamedTuple):
    """A whole response; its body is decoded."""

    head: httpx.Response
    body: bytes


class HttpSession:
    """Sends one request at a time with an httpx client. Raises `SessionUnavailable`.

    A request may take twice as long as the client waits for one part of a response, and a large
    body longer.
    """

    def __init__(self, make_http_client: Callable[[], httpx.Client]) -> None:
        try:
            self._http = make_http_client()
        except _WRONG_SETTINGS as error:
            raise SessionUnavailable(
                "no HTTP client can be made, maybe for a proxy or certificates that variables of"
                f" the environment name: {type(error).__name__}: {error}"
            ) from error
        part_timeout_s = self._http.timeout.read
        self._timeout_s = float("inf") if part_timeout_s is None else 2 * part_timeout_s
        self._connections = _Connections()

    def post(
        self,
        url: str,
        content: bytes,
        *,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None = None,
        max_bytes: float = float("inf"),
    ) -> Response:
        """Send a body and return the response. Raises `httpx.HTTPError`, `httpx.InvalidURL`."""
        upload_s = len(content) / _SLOWEST_UPLOAD_BYTES_PER_S
        deadline = _Deadline(self._timeout_s + upload_s, self._connections)
        try:
            with (
                deadline,
                self._http.stream(
                    "POST",
                    url,
                    params=params,
                    headers=headers,
                    content=content,
                    extensions={"trace": deadline.note},
                ) as head,
            ):
                return Response(head, _read(head, deadline, max_bytes))
        except httpx.HTTPError as error:
            if deadline.is_over:
                raise httpx.ReadTimeout(_ENDLESS) from error
            raise

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


_ENDLESS = "the response does not end"


def _read(head: httpx.Response, deadline: _Deadline, max_bytes: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in head.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > max_bytes or deadline.is_over:
            break
    if size > max_bytes or deadline.is_over:  # a body without a length seems to end when it is cut
        raise httpx.ReadTimeout(_ENDLESS)
    return b"".join(parts)


class _Connections:
    """The sockets that a session has opened."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def note(self, stream: Any) -> None:  # noqa: ANN401 - a class of httpcore, by the name of httpx
        """Keep the socket of a new connection, and forget those that are closed."""
        new = stream.get_extra_info("socket")
        if isinstance(new, socket.socket):
            self._sockets = [*(one for one in self._sockets if one.fileno() >= 0), new]

    def shut_down(self) -> None:
        """End whatever waits for one of them in another thread."""
        for one in self._sockets:
            with suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)  # that of TLS is for its own thread


class _Deadline:
    """Shuts down the connections of a session if its request takes too long."""

    def __init__(self, timeout_s: float, connections: _Connections) -> None:
        self._connections = connections
        self._end_s = time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._is_finished = False
        self._timer = threading.Timer(min(timeout_s, threading.TIMEOUT_MAX), self._cut)
        self._timer.name = "headrace-deadline"
        self._timer.daemon = True

    @property
    def is_over(self) -> bool:
        """Whether the request has taken too long."""
        return time.monotonic() >= self._end_s

    def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Note a connection, which may come too late; httpx calls this for all that it does."""
        if event.endswith(_CONNECTED):
            self._connections.note(info["return_value"])
            if self.is_over:
                self._connections.shut_down()

    def __enter__(self) -> Self:
        with suppress(RuntimeError):  # the interpreter ends, and waits for no request
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:  # after this the connections may be those of another request
            self._is_finished = True
        self._timer.cancel()

    def _cut(self) -> None:
        with self._lock:
            if not self._is_finished:
                self._connections.shut_down()
