"""The endpoint table, which routing, metrics, the access log and OpenAPI read."""

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
    SharedStateUnavailable,
    StoreUnavailable,
    UnsupportedEncoding,
    UnsupportedMediaType,
    WebsiteMissingOrganization,
    WebsiteNotFound,
)
from headrace.http.responses import Envelope


class CorsPolicy(Enum):
    """Which origins may call an endpoint from a page."""

    ANY_ORIGIN = "any origin"
    CONFIGURED_ORIGINS = "configured origins"
    NONE = "none"


class EndpointSpec(Struct, frozen=True):
    """One endpoint. `name` is its label in metrics and logs; `errors` is what it may raise.

    `is_ingestion` marks the endpoints that accept events. `is_routine` marks those whose successful
    requests are too many and too alike for a line each in the access log.
    """

    name: str
    path: str
    methods: tuple[str, ...]
    envelope: Envelope = Envelope.INGESTION
    cors: CorsPolicy = CorsPolicy.NONE
    errors: tuple[type[HeadraceError], ...] = (MethodNotAllowed,)
    is_ingestion: bool = False
    is_routine: bool = False


_BODY_ERRORS = (
    MethodNotAllowed,
    PayloadTooLarge,
    UnsupportedMediaType,
    UnsupportedEncoding,
    RequestTimeout,
    InvalidBody,
)
_INGESTION_ERRORS = (
    *_BODY_ERRORS,
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
    SharedStateUnavailable,
)
_QUERY_ERRORS = (
    *_BODY_ERRORS,
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
    SharedStateUnavailable,
)


def _ingestion_endpoint(name: str, path: str) -> EndpointSpec:
    return EndpointSpec(
        name,
        path,
        ("POST", "OPTIONS"),
        cors=CorsPolicy.ANY_ORIGIN,
        errors=_INGESTION_ERRORS,
        is_ingestion=True,
        is_routine=True,
    )


def _get_endpoint(name: str, path: str, *, is_routine: bool = False) -> EndpointSpec:
    return EndpointSpec(name, path, ("GET", "HEAD"), is_routine=is_routine)


TRACK = _ingestion_endpoint("track", "/track")
VITALS = _ingestion_endpoint("vitals", "/vitals")
ERRORS = _ingestion_endpoint("errors", "/errors")
BATCH = _ingestion_endpoint("batch", "/batch")
PAGE = _ingestion_endpoint("page", "/")
QUERY = EndpointSpec(
    "query",
    "/v1/query/custom",
    ("POST", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
    _QUERY_ERRORS,
)
SCHEMA = EndpointSpec(
    "schema",
    "/v1/query/schema",
    ("GET", "HEAD", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
)
HEALTH = _get_endpoint("health", "/health", is_routine=True)
READY = _get_endpoint("ready", "/ready", is_routine=True)
METRICS = _get_endpoint("metrics", "/metrics", is_routine=True)
OPENAPI = _get_endpoint("openapi", "/openapi.json")
DOCS = _get_endpoint("docs", "/docs")

UNKNOWN = EndpointSpec("unknown", "", (), errors=(NotFound,))
UNKNOWN_V1 = EndpointSpec("unknown", "", (), Envelope.QUERY, errors=(NotFound,))

INGESTION_ENDPOINTS = (TRACK, VITALS, ERRORS, BATCH, PAGE)
"""The endpoints with `is_ingestion`, in the order of the documentation."""

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
