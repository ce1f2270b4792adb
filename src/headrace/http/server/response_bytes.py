"""Encodes HTTP/1.1 responses that the server writes to the transport without ASGI."""

from collections.abc import Iterable
from http import HTTPStatus

from headrace.http.responses import Header

_RFC_9110_PHRASES = {413: "Content Too Large"}  # Python before 3.13 has the name of RFC 7231


def _status_line(status: int, phrase: str) -> bytes:
    return f"HTTP/1.1 {status} {_RFC_9110_PHRASES.get(status, phrase)}\r\n".encode()


_STATUS_LINES = {status.value: _status_line(status.value, status.phrase) for status in HTTPStatus}


def encode_response(status: int, headers: Iterable[Header], body: bytes) -> bytes:
    """Return a whole response. `headers` must have the length of `body`."""
    return b"%b\r\n%b" % (encode_head(status, headers), body)


def encode_head(status: int, headers: Iterable[Header]) -> bytes:
    """Return status line and header lines, without the empty line that ends the head."""
    return _STATUS_LINES[status] + encode_headers(headers)


def encode_headers(headers: Iterable[Header]) -> bytes:
    """Return header lines, each with its line end."""
    return b"".join(b"%b: %b\r\n" % header for header in headers)
