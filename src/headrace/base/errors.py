"""Every error that Headrace raises, as one tree. An error carries facts, never HTTP.

HeadraceError
  CallerError                 the caller can mend it; never logged as an error
    InvalidBody               the body breaks the rules of the endpoint; carries the faults
    InvalidIdempotencyKey
    MissingCredentials        neither key nor website identifier
    AuthenticationRequired    a query without a key for a website that is not public
    InvalidApiKey             unknown, revoked or expired
    MissingScope              the key lacks a right
    WebsiteNotFound
    WebsiteMissingOrganization
    ScopeMismatch             the event's website is not one that the credential may write
    OriginNotAuthorized
    PayloadTooLarge           bytes on the wire, bytes decoded, or items
    UnsupportedMediaType
    UnsupportedEncoding
    MethodNotAllowed
    NotFound                  no such path
    RequestTimeout            the body stalled or trickled
    RateLimited
    MissingWebsiteId          a query that names no website
    InvalidQuery              a query that breaks a rule; carries the cause and the culprit
    QueryTimedOut             the deadline passed
    QueryTooLarge             the memory cap was reached
  Unavailable                 it works again later; the caller should retry
    LogUnavailable            events cannot be made durable now
    StoreUnavailable          the engine is away
    DirectoryUnavailable      websites and keys cannot be looked up now
    SharedUnavailable         what machines share, repeats and rate limits, cannot be reached now
  LogUncertain                the disk failed so that nobody can tell whether it is durable
  NotYetStored                durable, and not in the store in time; it will be there later
  OperatorError               a setting, a port or a directory is wrong; one sentence for people
"""

from dataclasses import dataclass
from enum import Enum


class HeadraceError(Exception):
    """The root of the tree."""


class ClientError(HeadraceError):
    """The caller's fault."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong with one item of a body.

    `index` counts from 0; `field` is the top-level field's name, or "" for the item itself.
    """

    index: int
    field: str
    message: str


class InvalidBody(ClientError):
    """The body breaks the rules; `field_errors` is empty where the body is not even JSON."""

    def __init__(self, field_errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__("Invalid request body")
        self.field_errors = field_errors


class InvalidIdempotencyKey(ClientError):
    """The Idempotency-Key header is too long."""


class MissingCredentials(ClientError):
    """Neither an API key nor a website identifier was supplied."""


class AuthenticationRequired(ClientError):
    """A query came without a key for a website that is not public."""


class InvalidApiKey(ClientError):
    """The key is unknown, revoked or expired."""


class MissingScope(ClientError):
    """The key is valid and lacks the scope that the call needs."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"API key missing {scope} scope")
        self.scope = scope


class WebsiteNotFound(ClientError):
    """No such website, or none that the caller may know of."""


class WebsiteMissingOrganization(ClientError):
    """The website's organization was deleted."""


class ScopeMismatch(ClientError):
    """An event names a website that the credential may not write."""


class OriginNotAuthorized(ClientError):
    """The website lists origins and the call came from another."""


class PayloadTooLarge(ClientError):
    """Too many bytes or too many items."""


class UnsupportedMediaType(ClientError):
    """The Content-Type is not one of JSON or plain text."""


class UnsupportedEncoding(ClientError):
    """The Content-Encoding is unknown, or there are several."""


class MethodNotAllowed(ClientError):
    """The path exists, the method does not."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__("Method not allowed")
        self.allowed = allowed


class NotFound(ClientError):
    """No such path."""


class RequestTimeout(ClientError):
    """The body stopped coming."""


class RateLimited(ClientError):
    """Too many calls in the window."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("Rate limit exceeded")
        self.retry_after_s = retry_after_s


class MissingWebsiteId(ClientError):
    """A query names no website."""


class QueryErrorCode(Enum):
    """Why a query is refused: the code for programs and the words an error begins with."""

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
    DUPLICATE_OUTPUT_NAME = "Duplicate output name"


class InvalidQuery(ClientError):
    """A query breaks a rule.

    The message is the fault's words, then what names the culprit:
    `Invalid column "pth" for table "events" (did you mean "path"?)`.
    """

    def __init__(self, code: QueryErrorCode, detail: str) -> None:
        super().__init__(f"{code.value}{detail}")
        self.code = code


class QueryTimedOut(ClientError):
    """The query ran past its deadline and was ended."""


class QueryTooLarge(ClientError):
    """The query needed more memory than one query may use."""


class Unavailable(HeadraceError):
    """It does not work now and will again; the caller should retry after a pause."""

    def __init__(self, reason: str, *, retry_after_s: int = 5) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class LogUnavailable(Unavailable):
    """Events cannot be made durable now. Nothing of the request was kept."""


class DurabilityUnknown(HeadraceError):
    """The disk took events, did not confirm them, and could not be made to forget them.

    They are not read now and may be after a crash: to their caller this is no refusal.
    """


class StoreUnavailable(Unavailable):
    """The engine is away. Ingestion is not affected."""


class DirectoryUnavailable(Unavailable):
    """Websites and keys cannot be looked up now, so nobody can tell who may do what."""


class SharedStateUnavailable(Unavailable):
    """The server that machines share cannot be reached now. Nothing was promised."""


class StoreAckTimeout(HeadraceError):
    """Events are in the log and were not in the store in time: neither stored nor refused."""


class OperatorError(HeadraceError):
    """What the operator asked for cannot be done; the message is one clear sentence."""
