"""Heads of simple ingestion requests: their parsed form, and a cache by their bytes."""

from collections.abc import Mapping, Sequence
from typing import Final

from httptools import HttpParserInvalidURLError, parse_url
from msgspec import Struct

from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.reading.body import is_json_type
from headrace.http.reading.cors import Cors
from headrace.http.reading.credentials import read_credentials
from headrace.http.responses import Header
from headrace.http.server.response_bytes import encode_headers
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.model.tenancy import Credentials

_MAX_CACHED_HEADS: Final = 2_048
_MAX_SEEN_HEADS: Final = 16_384
_MAX_CACHED_HEAD_BYTES: Final = 2_048
_DISQUALIFYING_HEADERS: Final = frozenset(
    {
        b"connection",  # mostly to close it, or to upgrade it
        b"content-encoding",
        b"expect",
        b"idempotency-key",
        b"transfer-encoding",
        b"upgrade",
    }
)


class FastPathRoute(Struct, frozen=True):
    """An ingestion endpoint, the only kind that simple requests have."""

    spec: EndpointSpec
    endpoint: IngestPath
    cors: Cors | None


class CachedHead(Struct, frozen=True, gc=False):
    """The parsed head of a simple request. `response_tail` ends the head of its response."""

    spec: EndpointSpec
    endpoint: IngestPath
    body_size: int
    headers: Sequence[Header]
    credentials: Credentials
    user_agent: str
    response_tail: bytes
    cors_headers: Sequence[Header]


class SimpleHeadParser:
    """Parses the heads of simple requests to `routes`, which has them by path."""

    def __init__(self, routes: Mapping[bytes, FastPathRoute], max_body_bytes: int) -> None:
        self._routes = routes
        self._max_body_bytes = max_body_bytes

    def parse(self, url: bytes, headers: Sequence[Header]) -> CachedHead | None:
        """Parse the head of a POST that keeps its connection; None if it is not simple."""
        last = dict(headers)
        size = last.get(b"content-length", b"")
        if (
            not _DISQUALIFYING_HEADERS.isdisjoint(last)
            or not 0 < int(size or 0) <= self._max_body_bytes
        ):
            return None
        content_type, origin = last.get(b"content-type"), last.get(b"origin")
        if content_type is not None and not is_json_type(content_type):
            return None
        try:
            parts = parse_url(url)
        except HttpParserInvalidURLError:
            return None
        route = self._routes.get(parts.path)
        if route is None or not (origin or b"").isascii():
            return None
        cors = route.cors.response_headers(origin) if route.cors else ()
        return CachedHead(
            spec=route.spec,
            endpoint=route.endpoint,
            body_size=int(size),
            headers=tuple(headers),
            credentials=read_credentials(parts.query or b"", last, headers),
            user_agent=last.get(b"user-agent", b"").decode("latin-1"),
            response_tail=encode_headers(cors) + b"\r\n" if cors else b"\r\n",
            cors_headers=cors,
        )


class HeadCache:
    """Parsed heads by their bytes, line ends included.

    Clients send one head repeatedly. The bytes of a head that was parsed once have the same
    meaning again, if they start a message again.
    """

    def __init__(self) -> None:
        self._seen_hashes: set[int] = set()
        self._heads: dict[bytes, CachedHead] = {}
        self.get = self._heads.get
        """Returns the parsed head for its bytes, or None."""

    def remember(self, raw: bytes, head: CachedHead) -> None:
        """Cache a head from its second occurrence on.

        If every request has a head of its own, as with a trace id, the cache stays empty.
        """
        if len(raw) > _MAX_CACHED_HEAD_BYTES:
            return
        head_hash = hash(raw)
        if head_hash not in self._seen_hashes:
            if len(self._seen_hashes) >= _MAX_SEEN_HEADS:
                self._seen_hashes.clear()
            self._seen_hashes.add(head_hash)
            return
        if len(self._heads) >= _MAX_CACHED_HEADS:
            self._heads.clear()
        self._heads[raw] = head
