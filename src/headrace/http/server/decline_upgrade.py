"""Requests that offer another protocol are handled as plain HTTP/1.1, as RFC 9110 permits.

Java's client offers HTTP/2 with each request, as `curl --http2` does. The parser of httptools ends
such a request at its head, and the body would be lost.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from httptools import HttpParserUpgrade, HttpRequestParser

from headrace.http.responses import Header

_HOP_BY_HOP: Final = frozenset({b"upgrade", b"http2-settings"})


class UpgradableConnection(Protocol):
    """The connection of a parser; it has the callbacks of httptools too."""

    has_upgrade_offer: bool
    """Whether the last head offers another protocol for its request."""

    def ignore_upgrade(self) -> HttpRequestParser:
        """Parse the last head again without the offer; return the parser of the bytes after it."""
        ...


class NoUpgradeParser(HttpRequestParser):
    """A parser that continues after an upgrade offer instead of ending with it."""

    def __init__(self, connection: UpgradableConnection) -> None:
        super().__init__(connection)
        self._connection = connection
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # uvicorn gives it bytes
        """Parse a chunk, in which each of the pipelined requests may have an offer."""
        parser: HttpRequestParser = self
        rest = memoryview(data)
        while True:
            try:
                HttpRequestParser.feed_data(parser, rest)
            except HttpParserUpgrade as upgrade:
                if not self._connection.has_upgrade_offer:
                    raise
                parser, rest = self._connection.ignore_upgrade(), rest[upgrade.args[0] :]
            else:
                return


def offers_upgrade(headers: Iterable[Header]) -> bool:
    """Return whether a head offers another protocol; CONNECT ends HTTP without an offer."""
    return any(name == b"upgrade" for name, _ in headers)


def head_without_upgrade(
    method: bytes, url: bytes, version: str, headers: Iterable[Header]
) -> bytes:
    """Return the bytes of a head without its upgrade offer."""
    lines = [b"%b %b HTTP/%b" % (method, url, version.encode())]
    lines += [b"%b: %b" % header for header in _without_upgrade_headers(headers)]
    return b"\r\n".join([*lines, b"", b""])


def _without_upgrade_headers(headers: Iterable[Header]) -> Iterable[Header]:
    for name, value in headers:
        if name == b"connection":
            tokens = [token.strip() for token in value.lower().split(b",")]
            yield name, b", ".join(token for token in tokens if token not in _HOP_BY_HOP)
        elif name not in _HOP_BY_HOP:
            yield name, value
