"""Every error that Headrace raises, as one tree. An error carries facts, never HTTP.

HeadraceError
  ClientError                 the client can fix it; never logged as an error
    InvalidBody               the body breaks the rules of the endpoint; carries the field errors
    InvalidIdempotencyKey
    MissingCredentials        neither key nor website identifier
    AuthenticationRequired    a query without a key for a website that is not public
    InvalidApiKey             unknown, revoked or expired
    InvalidSignIn             a key or code that begins no session
    MissingScope              the key lacks a scope
    WebsiteNotFound
    WebsiteMissingOrganization
    ScopeMismatch             the credential may not write to the event's website
    OriginNotAuthorized
    PayloadTooLarge           bytes on the wire, bytes decoded, items, JSON objects or keys
    UnsupportedMediaType
    UnsupportedEncoding
    MethodNotAllowed
    NotFound                  no such path
    NotAcceptable             the resource has no form that the client accepts
    RequestTimeout            the body stalled or trickled
    RateLimited
    MissingWebsiteId          a query that names no website
    InvalidQuery              a query that breaks a rule; carries a code and a detail
    QueryTimedOut             the deadline passed
    QueryTooLarge             the memory cap was reached
  Unavailable                 temporary; the client should retry
    LogUnavailable            events cannot be made durable now
    StoreUnavailable          the store cannot be reached now
    DirectoryUnavailable      websites and keys cannot be looked up now
    SharedStateUnavailable    the server for idempotency and rate limits cannot be reached now
  DurabilityUnknown           the disk failed: the events may be durable or not
  StoreAckTimeout             durable, but not in the store in time; stored later
  OperatorError               a setting, a port or a directory is wrong; one clear sentence
    RejectedField             a value of what is administered breaks a rule
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class HeadraceError(Exception):
    """The base class of all errors that Headrace raises."""


class ClientError(HeadraceError):
    """The client's error: the same request fails again."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error in one item of a body.

    `index` counts from 0; `field` is the top-level field's name, or "" for the item itself.
    """

    index: int
    field: str
    message: str


class InvalidBody(ClientError):
    """The body breaks the rules; `field_errors` is empty where the body is not JSON."""

    def __init__(self, field_errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__("Invalid request body")
        self.field_errors = field_errors


class InvalidIdempotencyKey(ClientError):
    """The Idempotency-Key header is too long."""


class MissingCredentials(ClientError):
    """Neither an API key nor a website identifier was supplied."""


class AuthenticationRequired(ClientError):
    """A query without a key names a website that is not public."""


class InvalidApiKey(ClientError):
    """The key is unknown, revoked or expired."""


class InvalidSignIn(ClientError):
    """The key or the code of a sign-in is unknown, used or over."""


class MissingScope(ClientError):
    """The key is valid but lacks the scope that the request needs."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"API key missing {scope} scope")
        self.scope = scope


class WebsiteNotFound(ClientError):
    """No such website, or none that is visible to the caller."""


class WebsiteMissingOrganization(ClientError):
    """The website's organization was deleted."""


class ScopeMismatch(ClientError):
    """An event names a website that the credential may not write."""


class OriginNotAuthorized(ClientError):
    """The website lists allowed origins, and the request's is not among them."""


class PayloadTooLarge(ClientError):
    """Too many bytes, items, JSON objects, arrays or keys."""


_MAX_QUOTED_LENGTH = 128


class UnsupportedMediaType(ClientError):
    """The Content-Type is not one of JSON or plain text."""

    def __init__(self, content_type: str) -> None:
        quoted = content_type[:_MAX_QUOTED_LENGTH]
        super().__init__(f'Unsupported media type "{quoted}": send application/json')


class UnsupportedEncoding(ClientError):
    """The Content-Encoding is unknown, or there are several; `supported` are the known ones."""

    def __init__(self, encoding: str, supported: Iterable[str]) -> None:
        quoted = encoding[:_MAX_QUOTED_LENGTH]
        super().__init__(
            f'Unsupported content encoding "{quoted}": send one of {", ".join(supported)}'
        )


class MethodNotAllowed(ClientError):
    """The path exists, the method does not."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__("Method not allowed")
        self.allowed = allowed


class NotFound(ClientError):
    """No such path."""


class NotAcceptable(ClientError):
    """The resource has no form that the client accepts."""


class RequestTimeout(ClientError):
    """The body stalled, or arrived too slowly."""


class RateLimited(ClientError):
    """Too many requests in the window."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("Rate limit exceeded")
        self.retry_after_s = retry_after_s


class MissingWebsiteId(ClientError):
    """A query names no website."""


class QueryErrorCode(Enum):
    """Why a query is rejected: the name is the code, the value begins the message."""

    INVALID_BODY = "Invalid request body"
    INVALID_TABLE = "Invalid table"
    INVALID_COLUMN = "Invalid column"
    NOT_FILTERABLE = "Column not filterable"
    NOT_AGGREGATABLE = "Column not aggregatable"
    TOO_MANY_SELECTS = "Too many selects"
    TOO_MANY_FILTERS = "Too many filters"
    TOO_MANY_GROUP_BY = "Too many groupBy"
    INVALID_SELECT = "Invalid select"
    INVALID_AGGREGATE = "Invalid aggregate"
    INVALID_FILTER = "Invalid filter"
    INVALID_OPERATOR = "Invalid operator"
    INVALID_VALUE = "Invalid value"
    INVALID_START_DATE = "Invalid startDate"
    INVALID_END_DATE = "Invalid endDate"
    INVALID_TIMEZONE = "Invalid timezone"
    INVALID_GRANULARITY = "Invalid granularity"
    INVALID_LIMIT = "Invalid limit"
    INVALID_OFFSET = "Invalid offset"
    INVALID_ORDER_BY = "Invalid orderBy"
    INVALID_FILL = "Invalid fill"
    INVALID_HAVING = "Invalid having"
    INVALID_TOP = "Invalid top"
    INVALID_COMPARE = "Invalid compare"
    INVALID_TOTALS = "Invalid totals"
    INVALID_LAST_DAYS = "Invalid lastDays"
    DUPLICATE_OUTPUT_NAME = "Duplicate output name"
    INVALID_STEPS = "Invalid steps"
    INVALID_WINDOW = "Invalid window"
    INVALID_BY = "Invalid by"
    INVALID_PERIODS = "Invalid periods"
    INVALID_TYPES = "Invalid types"
    INVALID_PARAMETER = "Invalid parameter"
    INVALID_SEARCH = "Invalid search"
    INVALID_FORMAT = "Invalid format"
    INVALID_FROM = "Invalid from"
    INVALID_TO = "Invalid to"
    INVALID_NAME = "Invalid name"


# Of the parameters of an export; the rest are of the body of a query.
EXPORT_ERROR_CODES = (
    QueryErrorCode.INVALID_PARAMETER,
    QueryErrorCode.INVALID_FORMAT,
    QueryErrorCode.INVALID_FROM,
    QueryErrorCode.INVALID_TO,
)


# Of the bodies of funnels, retention and standard queries; the rest are also of custom queries.
FUNNEL_ERROR_CODES = (
    QueryErrorCode.INVALID_STEPS,
    QueryErrorCode.INVALID_WINDOW,
    QueryErrorCode.INVALID_BY,
)
VALUES_ERROR_CODES = (
    QueryErrorCode.INVALID_PARAMETER,
    QueryErrorCode.INVALID_SEARCH,
)
SAVED_ERROR_CODES = (QueryErrorCode.INVALID_NAME,)
RETENTION_ERROR_CODES = (QueryErrorCode.INVALID_PERIODS, QueryErrorCode.INVALID_BY)
STANDARD_ERROR_CODES = (QueryErrorCode.INVALID_TYPES,)


class InvalidQuery(ClientError):
    """A query breaks a rule.

    The message is the code's text, a detail that names the cause, its path in the body where
    several entries may have it, and a reason or a suggestion:
    `Invalid operator "startsWith" in query.filters[1] (did you mean "starts_with"?)`.
    """

    def __init__(self, code: QueryErrorCode, detail: str, reason: str = "", path: str = "") -> None:
        where = f" in {path}" if path else ""
        super().__init__(f"{code.value}{detail}{where}{reason}")
        self.code = code
        self.detail = detail
        self.reason = reason
        self.path = path

    def located(self, path: str) -> "InvalidQuery":
        """Return the same error with a path, unless it has one: what raised it knew it better.

        A column that the table does not have is wrong wherever its name stands.
        """
        if self.path or self.code is QueryErrorCode.INVALID_COLUMN:
            return self
        return type(self)(self.code, self.detail, self.reason, path)

    def __reduce__(self) -> tuple[type["InvalidQuery"], tuple[QueryErrorCode, str, str, str]]:
        """Return what makes the error again in another process."""
        return type(self), (self.code, self.detail, self.reason, self.path)


class QueryTimedOut(ClientError):
    """The query passed its deadline and was cancelled."""


class QueryTooLarge(ClientError):
    """The query needed more memory than one query may use."""


class Unavailable(HeadraceError):
    """A temporary failure; the client should retry after `retry_after_s`."""

    def __init__(self, reason: str, *, retry_after_s: int = 5) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class LogUnavailable(Unavailable):
    """Events cannot be made durable now. Nothing of the request is durable."""


class DurabilityUnknown(HeadraceError):
    """The disk wrote events, failed to confirm them, and failed to discard them.

    They are not read now but may be after a crash, so the client must not see a refusal.
    """


class StoreUnavailable(Unavailable):
    """The store cannot be reached now. Ingestion is not affected."""


class DirectoryUnavailable(Unavailable):
    """Websites and keys cannot be read now, so no request can be authorized."""


class SharedStateUnavailable(Unavailable):
    """The server of shared state cannot be reached now. Nothing was changed."""


class StoreAckTimeout(HeadraceError):
    """Events are durable in the log but were not in the store in time; they are stored later."""


class OperatorError(HeadraceError):
    """The operator's command or setting cannot be carried out; the message is one sentence."""


class RejectedField(OperatorError):
    """A value of what is administered breaks a rule; `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def system_reason(error: Exception) -> str:
    """Return why something failed, as the end of a sentence: `is a directory`.

    Of an error of the system that is what it says, without the number and the path; of others it is
    their own text.
    """
    if isinstance(error, MemoryError):
        return "out of memory"
    if not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error)
    return reason[:1].lower() + reason[1:]
