"""Calls that offer another protocol are taken as plain HTTP/1.1, which a server may always do.

Java's client offers HTTP/2 with each call, as `curl --http2` does. The parser would end such a call
with its head, and its body would be lost.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from httptools import HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HOP_BY_HOP: Final = frozenset({b"upgrade", b"http2-settings"})


class _Parser(HttpRequestParser):
    """Tells its connection where an offer ends, and what comes after it."""

    def __init__(self, connection: "NoUpgradeProtocol") -> None:
        super().__init__(connection)
        self._connection = connection
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # uvicorn gives it bytes
        parser, rest = self, memoryview(data)
        while True:  # each call of a piece may come with an offer
            try:
                HttpRequestParser.feed_data(parser, rest)
            except HttpParserUpgrade as upgrade:
                if not self._connection.has_upgrade_offer:
                    raise
                parser, rest = self._connection.ignore_upgrade(), rest[upgrade.args[0] :]
            else:
                return


class NoUpgradeProtocol(HttpToolsProtocol):
    """uvicorn's protocol of one connection, which never becomes another."""

    has_upgrade_offer = False
    """Whether the head that came last offers another protocol beside its call."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        """Begin with a parser that tells of offers."""
        self.parser = _Parser(self)
        super().connection_made(transport)

    def on_headers_complete(self) -> None:
        """Keep a call back whose head comes once more, without the offer."""
        self.has_upgrade_offer = self.parser.should_upgrade() and any(
            name == b"upgrade" for name, _ in self.headers
        )
        if not self.has_upgrade_offer:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Go on, unless the call is kept back."""
        if not self.has_upgrade_offer:
            super().on_message_complete()

    def ignore_upgrade(self) -> _Parser:
        """Read the head again as if nothing were offered; return a parser for what follows it."""
        version = self.parser.get_http_version().encode()
        head = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, version)
        head += b"".join(
            b"%b: %b\r\n" % header for header in _without_upgrade_headers(self.headers)
        )
        self.parser = parser = _Parser(self)
        parser.feed_data(head + b"\r\n")
        return parser


def _without_upgrade_headers(
    headers: Iterable[tuple[bytes, bytes]],
) -> Iterable[tuple[bytes, bytes]]:
    for name, value in headers:
        if name == b"connection":
            tokens = [token.strip() for token in value.lower().split(b",")]
            yield name, b", ".join(token for token in tokens if token not in _HOP_BY_HOP)
        elif name not in _HOP_BY_HOP:
            yield name, value
