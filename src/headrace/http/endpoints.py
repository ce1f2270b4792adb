"""The endpoint table, which routing, metrics, the access log and OpenAPI read."""

from headrace.base.errors import (
    SAVED_ERROR_CODES,
    AuthenticationRequired,
    DirectoryUnavailable,
    HeadraceError,
    InvalidApiKey,
    InvalidQuery,
    MethodNotAllowed,
    MissingScope,
    MissingWebsiteId,
    NotAcceptable,
    NotFound,
    PayloadTooLarge,
    QueryErrorCode,
    QueryTimedOut,
    QueryTooLarge,
    RateLimited,
    RequestTimeout,
    SharedStateUnavailable,
    StoreUnavailable,
)
from headrace.http.endpoint_errors import (
    ADMINISTRATION_ERRORS,
    CONTENT_ERRORS,
    CUSTOM_CODES,
    ERASURE_ERRORS,
    EXPORT_CODES,
    EXPORT_ERRORS,
    FUNNEL_CODES,
    INGESTION_ERRORS,
    LISTING_ERRORS,
    QUERY_ERRORS,
    READING_ERRORS,
    RETENTION_CODES,
    SAVED_CODES,
    SAVING_ERRORS,
    SIGN_IN_ERRORS,
    STANDARD_CODES,
    STORAGE_ERRORS,
    VALUES_CODES,
)
from headrace.http.endpoint_spec import CorsPolicy, EndpointSpec
from headrace.http.responses import Envelope
from headrace.model.tenancy import Scope

_ROOT_METHODS = ("GET", "HEAD")
_ERRORS_OF_RUNNING = (QueryTooLarge, QueryTimedOut, StoreUnavailable)


def _ingestion_endpoint(
    name: str, path: str, *, other_methods: tuple[str, ...] = ()
) -> EndpointSpec:
    return EndpointSpec(
        name,
        path,
        ("POST", "OPTIONS"),
        cors=CorsPolicy.ANY_ORIGIN,
        errors=INGESTION_ERRORS,
        scope=Scope.TRACK_EVENTS,
        is_ingestion=True,
        is_routine=True,
        other_methods=other_methods,
    )


def _query_endpoint(name: str, path: str, query_errors: tuple[QueryErrorCode, ...]) -> EndpointSpec:
    return EndpointSpec(
        name,
        path,
        ("POST", "OPTIONS"),
        Envelope.QUERY,
        CorsPolicy.CONFIGURED_ORIGINS,
        QUERY_ERRORS,
        query_errors=query_errors,
        is_cancelled_by_disconnect=True,
    )


def _administration_endpoint(name: str, path: str, *methods: str) -> EndpointSpec:
    """Return an endpoint of all objects of a kind, or of the one whose id is in the path.

    The first method takes a body, or is GET.
    """
    takes_body = methods[0] != "GET"
    return EndpointSpec(
        name,
        f"/v1/admin/{path}",
        methods,
        Envelope.QUERY,
        errors=errors_of_path(path, ADMINISTRATION_ERRORS if takes_body else LISTING_ERRORS),
        scope=Scope.MANAGE_CONFIG,
        query_errors=(QueryErrorCode.INVALID_BODY,) if takes_body else (),
    )


def errors_of_path(
    path: str, errors: tuple[type[HeadraceError], ...]
) -> tuple[type[HeadraceError], ...]:
    """Return the errors of administration at a path: one that has an id may be unknown."""
    return (*errors, NotFound) if path.endswith("{id}") else errors


def _get_endpoint(name: str, path: str, *, is_routine: bool = False) -> EndpointSpec:
    return EndpointSpec(name, path, ("GET", "HEAD"), is_routine=is_routine)


def _pinned_endpoint(name: str, path: str) -> EndpointSpec:
    errors = (MethodNotAllowed, NotFound)
    return EndpointSpec(name, path, ("GET", "HEAD"), errors=errors, is_routine=True)


TRACK = _ingestion_endpoint("track", "/track")
VITALS = _ingestion_endpoint("vitals", "/vitals")
ERRORS = _ingestion_endpoint("errors", "/errors")
BATCH = _ingestion_endpoint("batch", "/batch")
PAGE = _ingestion_endpoint("page", "/", other_methods=_ROOT_METHODS)
ENGAGEMENT = _ingestion_endpoint("engagement", "/engagement")
IDENTIFY = _ingestion_endpoint("identify", "/identify")
QUERY = _query_endpoint("query", "/v1/query/custom", CUSTOM_CODES)
FUNNEL = _query_endpoint("funnel", "/v1/query/funnel", FUNNEL_CODES)
RETENTION = _query_endpoint("retention", "/v1/query/retention", RETENTION_CODES)
STANDARD = _query_endpoint("standard", "/v1/query/standard", STANDARD_CODES)
SQL = EndpointSpec(
    "sql",
    "/v1/query/sql",
    ("POST", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
    tuple(error for error in QUERY_ERRORS if error not in _ERRORS_OF_RUNNING),
    query_errors=CUSTOM_CODES,
)
VALUES = EndpointSpec(
    "values",
    "/v1/query/values",
    ("GET", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
    tuple(error for error in QUERY_ERRORS if error not in CONTENT_ERRORS),
    query_errors=VALUES_CODES,
    is_cancelled_by_disconnect=True,
)
SAVED_LIST = EndpointSpec(
    "saved_list",
    "/v1/saved",
    ("GET",),
    Envelope.QUERY,
    errors=tuple(
        error
        for error in SAVING_ERRORS
        if error not in (*CONTENT_ERRORS, InvalidQuery, StoreUnavailable)
    ),
    scope=Scope.MANAGE_DATA,
)
SAVED = EndpointSpec(
    "saved",
    "/v1/saved/{name}",
    ("PUT", "GET", "DELETE"),
    Envelope.QUERY,
    errors=(*SAVING_ERRORS, NotFound),
    scope=Scope.MANAGE_DATA,
    query_errors=SAVED_CODES,
)
SAVED_ANSWER = EndpointSpec(
    "saved_answer",
    "/v1/saved/{name}.{format}",
    ("GET", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
    (*(error for error in QUERY_ERRORS if error not in CONTENT_ERRORS), NotFound),
    query_errors=SAVED_ERROR_CODES,
    is_cancelled_by_disconnect=True,
)
LIVE = EndpointSpec(
    "live",
    "/v1/live",
    ("GET", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
    tuple(
        error
        for error in QUERY_ERRORS
        if error not in (*CONTENT_ERRORS, InvalidQuery, QueryTooLarge, QueryTimedOut)
    ),
    is_cancelled_by_disconnect=True,
)
SCHEMA = EndpointSpec(
    "schema",
    "/v1/query/schema",
    ("GET", "HEAD", "OPTIONS"),
    Envelope.QUERY,
    CorsPolicy.CONFIGURED_ORIGINS,
    tuple(
        error
        for error in QUERY_ERRORS
        if error not in {*CONTENT_ERRORS, MissingWebsiteId, InvalidQuery}
    ),
    is_cancelled_by_disconnect=True,
)
EXPORT = EndpointSpec(
    "export",
    "/v1/export",
    ("GET",),
    Envelope.QUERY,
    errors=EXPORT_ERRORS,
    scope=Scope.MANAGE_DATA,
    query_errors=EXPORT_CODES,
    is_cancelled_by_disconnect=True,
)
ERASURES = EndpointSpec(
    "erasures",
    "/v1/erasures",
    ("POST", "GET"),
    Envelope.QUERY,
    errors=ERASURE_ERRORS,
    scope=Scope.MANAGE_DATA,
)
SUBJECT_ACCESS = EndpointSpec(
    "subject_access",
    "/v1/subject-access",
    ("POST",),
    Envelope.QUERY,
    errors=ERASURE_ERRORS,
    scope=Scope.MANAGE_DATA,
    is_cancelled_by_disconnect=True,
)
ERASURE = EndpointSpec(
    "erasure",
    "/v1/erasures/{id}",
    ("GET",),
    Envelope.QUERY,
    errors=(
        MethodNotAllowed,
        PayloadTooLarge,
        RequestTimeout,
        AuthenticationRequired,
        InvalidApiKey,
        MissingScope,
        NotFound,
        StoreUnavailable,
        DirectoryUnavailable,
    ),
    scope=Scope.MANAGE_DATA,
)
SESSION = EndpointSpec(
    "session",
    "/v1/session",
    ("POST", "GET", "DELETE"),
    Envelope.QUERY,
    errors=SIGN_IN_ERRORS,
)
STORAGE = EndpointSpec(
    "storage",
    "/v1/storage",
    ("GET",),
    Envelope.QUERY,
    errors=STORAGE_ERRORS,
    query_errors=(QueryErrorCode.INVALID_PARAMETER,),
    is_cancelled_by_disconnect=True,
)
ADMIN_ORGANIZATIONS = _administration_endpoint(
    "admin_organizations", "organizations", "POST", "GET"
)
ADMIN_ORGANIZATION = _administration_endpoint(
    "admin_organization", "organizations/{id}", "PATCH", "GET", "DELETE"
)
ADMIN_WEBSITES = _administration_endpoint("admin_websites", "websites", "POST", "GET")
ADMIN_WEBSITE = _administration_endpoint("admin_website", "websites/{id}", "PATCH", "GET", "DELETE")
ADMIN_KEYS = _administration_endpoint("admin_keys", "keys", "POST", "GET")
ADMIN_KEY = _administration_endpoint("admin_key", "keys/{id}", "GET", "DELETE")
ADMIN_QUARANTINE = _administration_endpoint("admin_quarantine", "quarantine", "GET")
ADMIN_ENTRY = _administration_endpoint("admin_entry", "quarantine/{id}", "GET")
ADMIN_RETRY = EndpointSpec(
    "admin_retry",
    "/v1/admin/quarantine/{id}/retry",
    ("POST",),
    Envelope.QUERY,
    errors=(
        *READING_ERRORS,
        NotFound,
        RateLimited,
        StoreUnavailable,
        SharedStateUnavailable,
    ),
    scope=Scope.MANAGE_CONFIG,
    query_errors=(QueryErrorCode.INVALID_BODY,),
)
ADMIN_AUDIT = EndpointSpec(
    "admin_audit",
    "/v1/admin/audit",
    ("GET",),
    Envelope.QUERY,
    errors=READING_ERRORS,
    scope=Scope.MANAGE_CONFIG,
    query_errors=(
        QueryErrorCode.INVALID_PARAMETER,
        QueryErrorCode.INVALID_LIMIT,
        QueryErrorCode.INVALID_BODY,
    ),
)
HEALTH = _get_endpoint("health", "/health", is_routine=True)
READY = _get_endpoint("ready", "/ready", is_routine=True)
METRICS = _get_endpoint("metrics", "/metrics", is_routine=True)
OPENAPI = _get_endpoint("openapi", "/openapi.json")
DOCS = _get_endpoint("docs", "/docs")
TRACKER = _get_endpoint("tracker", "/headrace.js", is_routine=True)
TRACKER_MAP = _get_endpoint("tracker_map", "/headrace.js.map")
TRACKER_EXTRAS = _get_endpoint("tracker_extras", "/headrace-extras.js", is_routine=True)
TRACKER_EXTRAS_MAP = _get_endpoint("tracker_extras_map", "/headrace-extras.js.map")
TRACKER_DETAILS = _get_endpoint("tracker_details", "/headrace-details.js", is_routine=True)
TRACKER_DETAILS_MAP = _get_endpoint("tracker_details_map", "/headrace-details.js.map")
TRACKER_PINNED = _pinned_endpoint("tracker_pinned", "/headrace.{hash}.js")
TRACKER_EXTRAS_PINNED = _pinned_endpoint("tracker_extras_pinned", "/headrace-extras.{hash}.js")
TRACKER_DETAILS_PINNED = _pinned_endpoint("tracker_details_pinned", "/headrace-details.{hash}.js")
TRACKER_MANIFEST = _get_endpoint("tracker_manifest", "/headrace.json")

APP = EndpointSpec(
    "app", "/app/{path:path}", ("GET", "HEAD"), errors=(MethodNotAllowed, NotFound), is_routine=True
)
ROOT = EndpointSpec("root", "/", _ROOT_METHODS, errors=(MethodNotAllowed, NotAcceptable))
UNKNOWN = EndpointSpec("unknown", "", (), errors=(NotFound,))
UNKNOWN_V1 = EndpointSpec("unknown", "", (), Envelope.QUERY, errors=(NotFound,))

INGESTION_ENDPOINTS = (TRACK, VITALS, ERRORS, BATCH, PAGE, ENGAGEMENT, IDENTIFY)
"""The endpoints with `is_ingestion`, in the order of the documentation."""

QUERY_ENDPOINTS = (QUERY, FUNNEL, RETENTION)
"""The endpoints that run the query of a body, in the order of the documentation."""

SAVED_FORMATS = ("json", "csv", "arrow", "parquet", "ndjson")
"""The formats of the path of `SAVED_ANSWER`; any other ending is part of a name, and no valid one.
"""

TRACKER_ENDPOINTS = (
    TRACKER,
    TRACKER_MAP,
    TRACKER_EXTRAS,
    TRACKER_EXTRAS_MAP,
    TRACKER_DETAILS,
    TRACKER_DETAILS_MAP,
    TRACKER_PINNED,
    TRACKER_EXTRAS_PINNED,
    TRACKER_DETAILS_PINNED,
    TRACKER_MANIFEST,
)
"""The browser tracker. The paths are those without the setting `tracker_path`."""

ADMINISTRATION_ENDPOINTS = (
    ADMIN_ORGANIZATIONS,
    ADMIN_ORGANIZATION,
    ADMIN_WEBSITES,
    ADMIN_WEBSITE,
    ADMIN_KEYS,
    ADMIN_KEY,
    ADMIN_QUARANTINE,
    ADMIN_ENTRY,
    ADMIN_RETRY,
    ADMIN_AUDIT,
)
"""The endpoints of organizations, websites, keys, the quarantine, and the record of changes."""

QUARANTINE_ENDPOINTS = (ADMIN_QUARANTINE, ADMIN_ENTRY, ADMIN_RETRY)

PARAMETER_QUERY_ENDPOINTS = (VALUES,)
"""The endpoints that run the query of their parameters, with the same formats and rate."""

PAGE_ENDPOINTS = (APP, ROOT)
"""The page for people. It is no part of the API, and so not of its description."""

ENDPOINTS = (
    *INGESTION_ENDPOINTS,
    *QUERY_ENDPOINTS,
    STANDARD,
    SQL,
    *PARAMETER_QUERY_ENDPOINTS,
    SAVED_LIST,
    SAVED,
    SAVED_ANSWER,
    LIVE,
    SCHEMA,
    EXPORT,
    ERASURES,
    ERASURE,
    SUBJECT_ACCESS,
    STORAGE,
    SESSION,
    *ADMINISTRATION_ENDPOINTS,
    HEALTH,
    READY,
    METRICS,
    OPENAPI,
    DOCS,
    *TRACKER_ENDPOINTS,
)
