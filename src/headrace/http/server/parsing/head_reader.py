"""Reads request heads, each in any number of chunks of the connection."""

import re
from types import SimpleNamespace
from typing import Final, Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

MAX_HEAD_BYTES: Final = 65_536
UNKNOWN_METHOD: Final = b"UNKNOWN"
"""Stands for every method that we do not know, so that no log line has text of a caller."""

_KNOWN_METHODS: Final = frozenset(
    {b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"PATCH", b"POST", b"PUT", b"TRACE"}
)
_STAND_IN: Final = b"PUT"
"""What llhttp parses for an unknown method. It accepts some others, and only with some targets."""

_END: Final = b"\r\n\r\n"
_BLANKS: Final = b" \t"
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HOST: Final = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+\]"  # IPv6
    rb"|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})++)"  # a name or IPv4: RFC 3986, reg-name
    rb"(?::[0-9]*)?"
)


class HeadTooLong(Exception):
    """A head is longer than `MAX_HEAD_BYTES`."""


class HeadReceiver(Protocol):
    """Takes the parts of a head, with the callbacks of httptools."""

    def on_message_begin(self) -> None:
        """Start a request."""
        ...

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        ...

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        ...


class HeadReader:
    """Reads the heads of a connection, each with an llhttp parser that gets no byte behind it.

    A head ends at its first empty line: llhttp accepts no line end but CR LF.
    """

    __slots__ = (
        "_bytes",
        "_callbacks",
        "_is_complete",
        "_parser",
        "_receive_header",
        "_start",
        "_tail",
        "keep_alive",
        "method",
        "version",
    )

    def __init__(self, receiver: HeadReceiver) -> None:
        self._receive_header = receiver.on_header
        self._callbacks = SimpleNamespace(
            on_message_begin=receiver.on_message_begin,
            on_url=receiver.on_url,
            on_header=self._take_header,
            on_headers_complete=self._complete,
        )
        self._parser: HttpRequestParser | None = None
        self._start = b""  # of the request line, until its method is complete
        self._tail = b""  # the last bytes before the chunk, in which the empty line may begin
        self._bytes = 0
        self._is_complete = False
        self.method = b""
        """The method of the last head, `UNKNOWN_METHOD` for one we do not know."""
        self.version = ""
        """Its version of HTTP, such as "1.1"."""
        self.keep_alive = True
        """Whether it leaves the connection open."""

    @property
    def is_in_head(self) -> bool:
        """Whether a head is incomplete."""
        return self._parser is not None

    def feed(self, data: bytes, position: int) -> int:
        """Read a head's part of a chunk and return where it ends.

        Raises `HttpParserError` for malformed HTTP, and `HeadTooLong`.
        """
        if self._parser is None:
            self._parser = HttpRequestParser(self._callbacks)
            self._is_complete = False
            self.method = self._start = self._tail = b""
            self._bytes = 0
        end = self._find_end(data, position)
        is_last = end > 0
        part = data[position : end if is_last else len(data)]
        self._bytes += len(part)
        if self._bytes > MAX_HEAD_BYTES:
            raise HeadTooLong
        if not self.method:
            part = self._read_method(part)
        try:  # noqa: SIM105 - `suppress` costs half a microsecond
            self._parser.feed_data(part)
        except HttpParserUpgrade:  # raised at the end of a head with an offer
            pass
        if self._is_complete is not is_last:
            raise HttpParserError("the head does not end at its first empty line")
        if not is_last:
            return len(data)
        self._parser = None
        return end

    def _take_header(self, name: bytes, value: bytes) -> None:
        """Pass a header on without the blanks behind its value, which llhttp leaves.

        They are no part of it: RFC 9112, section 5.1.
        """
        self._receive_header(name, value.rstrip(_BLANKS))

    def _complete(self) -> None:
        parser = self._parser
        if parser is not None:
            self._is_complete = True
            self.keep_alive = parser.should_keep_alive()
            self.version = parser.get_http_version()

    def _find_end(self, data: bytes, position: int) -> int:
        """Return where the head ends, 0 for not in this chunk."""
        if self._tail:
            at = (self._tail + data[:3]).find(_END)
            if at >= 0:
                return at + len(_END) - len(self._tail)
        at = data.find(_END, position)
        if at >= 0:
            return at + len(_END)
        self._tail = (self._tail + data[max(position, len(data) - 3) :])[-3:]
        return 0

    def _read_method(self, part: bytes) -> bytes:
        """Return what llhttp shall parse: nothing before the method is complete."""
        start = self._start + part
        blank = start.find(b" ")
        method = start[:blank] if blank >= 0 else start
        if method in _KNOWN_METHODS and blank >= 0:
            self.method = method
            return start
        if _TOKEN.fullmatch(method) is None:
            raise HttpParserError("invalid method")
        if blank < 0:
            self._start = start
            return b""
        self.method = UNKNOWN_METHOD
        return _STAND_IN + start[blank:]


def is_host(value: bytes) -> bool:
    """Return whether a value of Host is a host with an optional port."""
    return _HOST.fullmatch(value) is not None
