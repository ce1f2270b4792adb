"""Every endpoint as one row of a table: routing, metrics, log lines and OpenAPI read it."""

from enum import Enum

from msgspec import Struct

from headrace.base.errors import (
    AuthenticationRequired,
    DirectoryUnavailable,
    HeadraceError,
    InvalidApiKey,
    InvalidBody,
    InvalidIdempotencyKey,
    InvalidQuery,
    LogUnavailable,
    MethodNotAllowed,
    MissingCredentials,
    MissingScope,
    MissingWebsiteId,
    NotFound,
    OriginNotAuthorized,
    PayloadTooLarge,
    QueryTimedOut,
    QueryTooLarge,
    RateLimited,
    RequestTimeout,
    ScopeMismatch,
    SharedUnavailable,
    StoreUnavailable,
    UnsupportedEncoding,
    UnsupportedMediaType,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.http.responses import Envelope


class CorsPolicy(Enum):
    """Which pages may call an endpoint."""

    ANY_ORIGIN = "any origin"
    CONFIGURED_ORIGINS = "configured origins"
    NONE = "none"


class EndpointRow(Struct, frozen=True):
    """One endpoint. `name` is its label in metrics and logs; `refusals` is what it may raise."""

    name: str
    path: str
    methods: tuple[str, ...]
    envelope: Envelope = Envelope.INGESTION
    cors: CorsPolicy = CorsPolicy.NONE
    refusals: tuple[type[HeadraceError], ...] = (MethodNotAllowed,)

    @property
    def is_ingestion(self) -> bool:
        """Tell whether it takes events in."""
        return self.cors is CorsPolicy.ANY_ORIGIN

    @property
    def is_routine(self) -> bool:
        """Tell whether calls that succeed are too many and too alike for a line in the log."""
        return self.is_ingestion or self.name in {"health", "ready", "metrics"}


_BODY_REFUSALS = (
    MethodNotAllowed,
    PayloadTooLarge,
    UnsupportedMediaType,
    UnsupportedEncoding,
    RequestTimeout,
    InvalidBody,
)
_INGESTION_REFUSALS = (
    *_BODY_REFUSALS,
    InvalidIdempotencyKey,
    MissingCredentials,
    InvalidApiKey,
    MissingScope,
    WebsiteNotFound,
    ScopeMismatch,
    OriginNotAuthorized,
    WebsiteMissingOrganization,
    LogUnavailable,
    DirectoryUnavailable,
    SharedUnavailable,
)
_QUERY_REFUSALS = (
    *_BODY_REFUSALS,
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    RateLimited,
    MissingWebsiteId,
    WebsiteNotFound,
    InvalidQuery,
    QueryTooLarge,
    QueryTimedOut,
    StoreUnavailable,
    DirectoryUnavailable,
    SharedUnavailable,
)


def _ingestion(name: str, path: str) -> EndpointRow:
    return EndpointRow(
        name,
        path,
        ("POST", "OPTIONS"),
        cors=CorsPolicy.ANY_ORIGIN,
        refusals=_INGESTION_REFUSALS,
    )


def _page(name: str, path: str) -> EndpointRow:
    return EndpointRow(name, path, ("GET", "HEAD"))


TRACK = _ingestion("track", "/track")
VITALS = _ingestion("vitals", "/vitals")
ERRORS = _ingestion("errors", "/errors")
BATCH = _ingestion("batch", "/batch")
PAGE = _ingestion("page", "/")
QUERY = EndpointRow(
    "query",
    "/v1/query/custom",
    ("POST", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
    _QUERY_REFUSALS,
)
SCHEMA = EndpointRow(
    "schema",
    "/v1/query/schema",
    ("GET", "HEAD", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
)
HEALTH = _page("health", "/health")
READY = _page("ready", "/ready")
METRICS = _page("metrics", "/metrics")
OPENAPI = _page("openapi", "/openapi.json")
DOCS = _page("docs", "/docs")

UNKNOWN = EndpointRow("unknown", "", (), refusals=(NotFound,))
UNKNOWN_BELOW_V1 = EndpointRow("unknown", "", (), Envelope.QUERY, refusals=(NotFound,))

INGESTION_ENDPOINTS = (TRACK, VITALS, ERRORS, BATCH, PAGE)
ENDPOINTS = (
    *INGESTION_ENDPOINTS,
    QUERY,
    SCHEMA,
    HEALTH,
    READY,
    METRICS,
    OPENAPI,
    DOCS,
)
