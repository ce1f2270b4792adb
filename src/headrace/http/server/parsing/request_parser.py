"""Parses the requests of a connection: where each ends, what its head says, what its body is."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from httptools import HttpParserError, parse_url

from headrace.http.responses import Header
from headrace.http.server.parsing.chunked_body import ChunkedBody
from headrace.http.server.parsing.head_reader import HeadReader, HeadReceiver, is_host


class ParsingConnection(HeadReceiver, Protocol):
    """The connection of a parser."""

    url: bytes

    @property
    def headers(self) -> Sequence[Header]:
        """Headers of the current head, names in lower case."""
        ...

    def on_headers_complete(self) -> None:
        """Take a head that is whole and valid."""
        ...

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        ...

    def on_message_complete(self) -> None:
        """Take the end of the body."""
        ...


_CR_OR_LF: Final = b"\r\n"


class RequestParser:
    """Calls a connection with its requests. It has the methods that uvicorn calls of httptools'.

    llhttp parses heads only: a chunked body never reaches it, so no field of a trailer can become a
    header or change the connection.
    """

    def __init__(self, connection: ParsingConnection) -> None:
        self._connection = connection
        self._head = HeadReader(connection)
        self._remaining = 0  # of a body with a length
        self._chunked: ChunkedBody | None = None
        self._valid_host: bytes | None = None  # the last one, since clients repeat it
        self._is_last = False  # the request closes the connection, so what follows it is dropped
        self.is_between_requests = True
        """Whether no byte of an incomplete request was read."""

    @property
    def is_in_head(self) -> bool:
        """Whether the head of a request is incomplete."""
        return self._head.is_in_head

    @property
    def is_in_body(self) -> bool:
        """Whether the body of a request is incomplete."""
        return self._remaining > 0 or self._chunked is not None

    def feed_data(self, data: bytes) -> None:
        """Parse a chunk. Raises `HttpParserError` for malformed HTTP, and `HeadTooLong`."""
        position = 0
        while position < len(data) and not self._is_last:
            if self._remaining:
                position = self._feed_sized_body(data, position)
            elif self._chunked is not None:
                position = self._feed_chunked_body(self._chunked, data, position)
            else:
                position = self._feed_head(data, position)

    def get_method(self) -> bytes:
        """Return the method of the current request, `UNKNOWN_METHOD` for one we do not know."""
        return self._head.method

    def get_http_version(self) -> str:
        """Return the version of the current request: "1.0" or "1.1"."""
        return self._head.version

    def should_keep_alive(self) -> bool:
        """Return whether the current request leaves the connection open."""
        return self._head.keep_alive

    def should_upgrade(self) -> bool:
        """Return False: an offer of another protocol is ignored, as RFC 9110 permits.

        Java's client offers HTTP/2 with each request, as `curl --http2` does.
        """
        return False

    def _feed_head(self, data: bytes, position: int) -> int:
        if self.is_between_requests:
            while data[position] in _CR_OR_LF:  # empty lines before a head are ignored: RFC 9112
                position += 1
                if position == len(data):
                    return position
            self.is_between_requests = False
        position = self._head.feed(data, position)
        if not self._head.is_in_head:
            self._start_request()
        return position

    def _start_request(self) -> None:
        connection = self._connection
        fields = dict(connection.headers)
        self._check_head(fields)
        size = int(fields.get(b"content-length", 0))
        chunked = ChunkedBody() if b"transfer-encoding" in fields else None
        if not connection.url.startswith(b"/"):
            connection.url = _origin_form(connection.url)
        connection.on_headers_complete()
        self._remaining, self._chunked = size, chunked
        if not self.is_in_body:
            self._complete_request()

    def _check_head(self, fields: Mapping[bytes, bytes]) -> None:
        """Check what llhttp leaves open: version, Host (RFC 9112, section 3.2), and coding.

        llhttp has checked lengths, and that no request has both a length and a coding.
        """
        version = self._head.version
        if version not in ("1.1", "1.0"):
            raise HttpParserError("unknown version")
        host = fields.get(b"host")
        if host is None:
            if version == "1.1":
                raise HttpParserError("no Host")
        elif host != self._valid_host:
            if not is_host(host):
                raise HttpParserError("invalid Host")
            self._valid_host = host
        if len(fields) != len(self._connection.headers):
            self._check_repeated_headers()
        coding = fields.get(b"transfer-encoding")
        if coding is not None and coding.lower() != b"chunked":
            raise HttpParserError("unknown transfer coding")

    def _check_repeated_headers(self) -> None:
        names = [name for name, _ in self._connection.headers]
        if names.count(b"host") > 1 or names.count(b"transfer-encoding") > 1:
            raise HttpParserError("several Hosts or transfer codings")

    def _feed_sized_body(self, data: bytes, position: int) -> int:
        content = data[position : position + self._remaining]
        self._remaining -= len(content)
        self._connection.on_body(content)
        if not self._remaining:
            self._complete_request()
        return position + len(content)

    def _feed_chunked_body(self, body: ChunkedBody, data: bytes, position: int) -> int:
        position, content = body.feed(data, position)
        if content:
            self._connection.on_body(content)
        if body.is_complete:
            self._chunked = None
            self._complete_request()
        return position

    def _complete_request(self) -> None:
        self.is_between_requests = True
        self._is_last = not self._head.keep_alive
        self._connection.on_message_complete()


def _origin_form(url: bytes) -> bytes:
    """Return path and query of an absolute target."""
    parts = parse_url(url)
    return b"%b?%b" % (parts.path or b"/", parts.query or b"")
