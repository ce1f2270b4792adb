"""CORS: which origins may call an endpoint from a page, and the headers that say so."""

from collections.abc import Collection

from msgspec import Struct

from headrace.http.endpoint_spec import CorsPolicy, EndpointSpec
from headrace.http.responses import Header, Response
from headrace.model.tenancy import DEFAULT_PORTS

PREFLIGHT_MAX_AGE_S = 86_400

INGESTION_REQUEST_HEADERS = (
    "Accept",
    "Accept-Language",
    "Authorization",
    "Content-Encoding",
    "Content-Language",
    "Content-Type",
    "Idempotency-Key",
    "X-API-Key",
    "X-Requested-With",
    "databuddy-client-id",
    "databuddy-sdk-name",
    "databuddy-sdk-version",
)
QUERY_REQUEST_HEADERS = (
    "Accept",
    "Accept-Language",
    "Authorization",
    "Content-Encoding",
    "Content-Language",
    "Content-Type",
    "If-None-Match",
    "Last-Event-ID",
    "X-API-Key",
)
INGESTION_RESPONSE_HEADERS = ("X-Request-Id", "Retry-After")
QUERY_RESPONSE_HEADERS = (
    *INGESTION_RESPONSE_HEADERS,
    "ETag",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Row-Count",
    "X-Truncated",
)

_VARY: Header = (b"vary", b"Origin")
_ALLOW_CREDENTIALS: Header = (b"access-control-allow-credentials", b"true")


class Cors(Struct, frozen=True):
    """The CORS headers of an endpoint. `origins` is None if every origin is allowed."""

    origins: frozenset[bytes] | None
    allow: Header
    preflight: tuple[Header, ...]
    response: tuple[Header, ...]

    def response_headers(self, origin: bytes | None) -> tuple[Header, ...]:
        """Return the CORS headers of a response. An empty Origin counts as absent."""
        if not origin:
            return ()
        if self.origins is not None and origin not in self.origins:
            return (_VARY,)
        return ((b"access-control-allow-origin", origin), *self.response)

    def preflight_response(self, origin: bytes | None) -> Response:
        """Return the response to OPTIONS, without the `response_headers` of every response."""
        is_allowed = bool(origin) and (self.origins is None or origin in self.origins)
        return Response(204, b"", (self.allow, *(self.preflight if is_allowed else ())))


def cors_for(spec: EndpointSpec, query_origins: Collection[str]) -> Cors | None:
    """Return the headers for the CORS policy of an endpoint; None if it has none."""
    match spec.cors:
        case CorsPolicy.NONE:
            return None
        case CorsPolicy.ANY_ORIGIN:
            return Cors(
                None,
                _allow_header(spec),
                _preflight_headers(spec, INGESTION_REQUEST_HEADERS),
                (_ALLOW_CREDENTIALS, _expose_header(INGESTION_RESPONSE_HEADERS), _VARY),
            )
        case CorsPolicy.CONFIGURED_ORIGINS:
            return Cors(
                frozenset(_normalize_origin(origin) for origin in query_origins),
                _allow_header(spec),
                _preflight_headers(spec, QUERY_REQUEST_HEADERS),
                (_expose_header(QUERY_RESPONSE_HEADERS), _VARY),
            )


def _normalize_origin(origin: str) -> bytes:
    origin = origin.rstrip("/").lower()
    port = DEFAULT_PORTS.get(origin.partition(":")[0])
    return (origin if port is None else origin.removesuffix(f":{port}")).encode()


def _allow_header(spec: EndpointSpec) -> Header:
    return b"allow", ", ".join(spec.path_methods).encode()


def _preflight_headers(spec: EndpointSpec, headers: Collection[str]) -> tuple[Header, ...]:
    return (
        (b"access-control-allow-methods", ", ".join(spec.methods).encode()),
        (b"access-control-allow-headers", ", ".join(headers).encode()),
        (b"access-control-max-age", b"%d" % PREFLIGHT_MAX_AGE_S),
    )


def _expose_header(headers: Collection[str]) -> Header:
    return b"access-control-expose-headers", ", ".join(headers).encode()
