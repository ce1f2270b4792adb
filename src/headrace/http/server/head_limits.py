"""Limits of a request head in time and size, so that an endless one costs neither."""

import secrets

from headrace.base.errors import ClientError
from headrace.http.responses import Envelope, error_response
from headrace.http.server.response_bytes import encode_response

MAX_HEAD_BYTES = 65_536
"""Bytes of a head after its first chunk. The parser joins every chunk to those before it."""


class HeadLimits:
    """The current request head of a connection. Times are of the event loop's clock."""

    __slots__ = ("_bytes", "_opened_s", "has_received_request", "started_s")

    def __init__(self, opened_s: float) -> None:
        self._opened_s = opened_s
        self._bytes = 0
        self.started_s: float | None = None
        """When the incomplete head started; None while no head is incomplete."""
        self.has_received_request = False

    def start(self, now_s: float) -> None:
        """Start the timeout of a head."""
        self.has_received_request = True
        self._bytes = 0
        self.started_s = now_s

    def complete(self) -> None:
        """End the timeout of a head."""
        self.started_s = None

    def count(self, started_s: float, size: int) -> None:
        """Count a chunk of the head that started then, unless the chunk completed that head."""
        if self.started_s == started_s:
            self._bytes += size

    def is_too_long(self) -> bool:
        """Return whether the head is longer than `MAX_HEAD_BYTES`."""
        return self._bytes > MAX_HEAD_BYTES

    def is_late(self, now_s: float, timeout_s: float) -> bool:
        """Return whether a head is incomplete after its timeout."""
        return self.started_s is not None and now_s - self.started_s > timeout_s

    def is_unused(self, now_s: float, timeout_s: float) -> bool:
        """Return whether the connection has not brought any request within the timeout."""
        return not self.has_received_request and now_s - self._opened_s > timeout_s


def encode_head_error(error: ClientError) -> bytes:
    """Return the response to a head over its limits, which closes the connection."""
    response = error_response(error, Envelope.INGESTION, secrets.token_hex(8))
    headers = (
        *(header for header in response.headers if header[0] != b"connection"),
        (b"content-length", b"%d" % len(response.body)),
        (b"connection", b"close"),
    )
    return encode_response(response.status, headers, response.body)
