"""The errors that endpoints may raise, and the codes of those that name a part of a query."""

from headrace.base.errors import (
    EXPORT_ERROR_CODES,
    FUNNEL_ERROR_CODES,
    RETENTION_ERROR_CODES,
    SAVED_ERROR_CODES,
    STANDARD_ERROR_CODES,
    VALUES_ERROR_CODES,
    AuthenticationRequired,
    DirectoryUnavailable,
    InvalidApiKey,
    InvalidBody,
    InvalidIdempotencyKey,
    InvalidQuery,
    InvalidSignIn,
    LogUnavailable,
    MethodNotAllowed,
    MissingCredentials,
    MissingScope,
    MissingWebsiteId,
    OriginNotAuthorized,
    PayloadTooLarge,
    QueryErrorCode,
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

_BODY_ERRORS = (
    MethodNotAllowed,
    PayloadTooLarge,
    UnsupportedMediaType,
    UnsupportedEncoding,
    RequestTimeout,
    InvalidBody,
)
INGESTION_ERRORS = (
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
CONTENT_ERRORS = (UnsupportedMediaType, UnsupportedEncoding, InvalidBody)
QUERY_ERRORS = (
    *_BODY_ERRORS,
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    RateLimited,
    MissingWebsiteId,
    WebsiteNotFound,
    WebsiteMissingOrganization,
    InvalidQuery,
    QueryTooLarge,
    QueryTimedOut,
    StoreUnavailable,
    DirectoryUnavailable,
    SharedStateUnavailable,
)
SAVING_ERRORS = tuple(
    error
    for error in QUERY_ERRORS
    if error not in (QueryTooLarge, QueryTimedOut, WebsiteMissingOrganization)
)
"""Of saved queries, which no credentials of a public website reach."""


EXPORT_ERRORS = (
    MethodNotAllowed,
    PayloadTooLarge,
    RequestTimeout,
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    MissingWebsiteId,
    WebsiteNotFound,
    InvalidQuery,
    StoreUnavailable,
    DirectoryUnavailable,
)


SESSION_ERRORS = (
    MethodNotAllowed,
    PayloadTooLarge,
    RequestTimeout,
    DirectoryUnavailable,
)
SIGN_IN_ERRORS = (
    *_BODY_ERRORS,
    InvalidSignIn,
    MissingScope,
    OriginNotAuthorized,
    RateLimited,
    DirectoryUnavailable,
)
ADMINISTRATION_ERRORS = (
    *_BODY_ERRORS[:-1],
    InvalidQuery,
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    RateLimited,
    DirectoryUnavailable,
    SharedStateUnavailable,
)
READING_ERRORS = (
    MethodNotAllowed,
    PayloadTooLarge,
    RequestTimeout,
    InvalidQuery,
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    DirectoryUnavailable,
)
"""Of administration that changes nothing and takes no body."""

LISTING_ERRORS = tuple(error for error in READING_ERRORS if error is not InvalidQuery)
"""Of reading without parameters."""

DELETING_ERRORS = (*LISTING_ERRORS, RateLimited, SharedStateUnavailable)

STORAGE_ERRORS = (
    MethodNotAllowed,
    PayloadTooLarge,
    RequestTimeout,
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    RateLimited,
    WebsiteNotFound,
    WebsiteMissingOrganization,
    InvalidQuery,
    StoreUnavailable,
    DirectoryUnavailable,
    SharedStateUnavailable,
)

ERASURE_ERRORS = (
    *_BODY_ERRORS,
    AuthenticationRequired,
    InvalidApiKey,
    MissingScope,
    RateLimited,
    MissingWebsiteId,
    WebsiteNotFound,
    StoreUnavailable,
    DirectoryUnavailable,
    SharedStateUnavailable,
)

_FILTER_CODES = (
    QueryErrorCode.INVALID_BODY,
    QueryErrorCode.INVALID_COLUMN,
    QueryErrorCode.NOT_FILTERABLE,
    QueryErrorCode.TOO_MANY_FILTERS,
    QueryErrorCode.INVALID_FILTER,
    QueryErrorCode.INVALID_OPERATOR,
    QueryErrorCode.INVALID_VALUE,
)
_RANGE_CODES = (
    QueryErrorCode.INVALID_LAST_DAYS,
    QueryErrorCode.INVALID_START_DATE,
    QueryErrorCode.INVALID_END_DATE,
    QueryErrorCode.INVALID_TIMEZONE,
)
FUNNEL_CODES = (
    *_FILTER_CODES,
    *FUNNEL_ERROR_CODES,
    *_RANGE_CODES,
)
RETENTION_CODES = (
    *_FILTER_CODES,
    QueryErrorCode.INVALID_GRANULARITY,
    *RETENTION_ERROR_CODES,
    *_RANGE_CODES,
)
VALUES_CODES = (
    VALUES_ERROR_CODES[0],
    QueryErrorCode.INVALID_TABLE,
    QueryErrorCode.INVALID_COLUMN,
    *VALUES_ERROR_CODES[1:],
    QueryErrorCode.INVALID_LIMIT,
    *_RANGE_CODES,
)
STANDARD_CODES = (
    *STANDARD_ERROR_CODES,
    *_FILTER_CODES,
    *_RANGE_CODES,
    QueryErrorCode.INVALID_GRANULARITY,
    QueryErrorCode.INVALID_LIMIT,
    QueryErrorCode.INVALID_COMPARE,
)
_OWN_CODES = frozenset(
    {
        *EXPORT_ERROR_CODES,
        *FUNNEL_ERROR_CODES,
        *RETENTION_ERROR_CODES,
        *SAVED_ERROR_CODES,
        *STANDARD_ERROR_CODES,
        *VALUES_ERROR_CODES,
    }
)
CUSTOM_CODES = tuple(code for code in QueryErrorCode if code not in _OWN_CODES)
SAVED_CODES = (*SAVED_ERROR_CODES, QueryErrorCode.INVALID_PARAMETER, *CUSTOM_CODES)
EXPORT_CODES = (QueryErrorCode.INVALID_TABLE, *EXPORT_ERROR_CODES)
