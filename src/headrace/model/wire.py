"""The bodies of requests as types. Ranges and lengths are part of the field types.

Field errors are listed in the order of the fields. Decoded JSON has no reference cycles, so items
are excluded from garbage collection (`gc=False`): a batch creates thousands of objects.
"""

from enum import Enum
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec import field as encoded_field

from headrace.model.catalog import (
    MAX_PROFILE_ID_LENGTH,
    MAX_TEXT_LENGTH,
    MAX_TITLE_LENGTH,
    MAX_URL_LENGTH,
)

Text64 = Annotated[str, Meta(max_length=64)]
Text128 = Annotated[str, Meta(max_length=128)]
Text255 = Annotated[str, Meta(max_length=255)]
Text512 = Annotated[str, Meta(max_length=512)]
ColumnText = Annotated[str, Meta(max_length=MAX_TEXT_LENGTH)]
UrlText = Annotated[str, Meta(max_length=MAX_URL_LENGTH)]
ProfileId = Annotated[str, Meta(max_length=MAX_PROFILE_ID_LENGTH)]
EventName = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_LENGTH)]
Timestamp = int | float | str
"""Epoch milliseconds, ISO 8601 or RFC 2822; see `ingest.receive.decoding.timestamps`."""


VISITOR_FIELDS = frozenset({"ip", "user_agent"})
"""Fields that are used on requests with an API key. On others these are unknown keys."""


class MetricName(Enum):
    """The web vitals."""

    FCP = "FCP"
    LCP = "LCP"
    CLS = "CLS"
    INP = "INP"
    TTFB = "TTFB"
    FPS = "FPS"


class Level(Enum):
    """The severity of an error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    FATAL = "fatal"


class CustomEvent(Struct, frozen=True, rename="camel", gc=False):
    """One item of /track."""

    name: EventName
    properties: dict[str, Any] | None = None
    anonymous_id: ColumnText | None = None
    session_id: ColumnText | None = None
    timestamp: Timestamp | None = None
    namespace: Text64 | None = None
    source: Text64 | None = None
    website_id: Text255 | None = None
    event_id: Text512 | None = None
    profile_id: ProfileId | None = None
    path: UrlText | None = None
    url: UrlText | None = None
    ip: Any = None  # one of `VISITOR_FIELDS`
    user_agent: Any = None


_Other = int | float | bool | list[Any] | dict[str, Any] | None
PromotedText = Annotated[str, Meta(max_length=MAX_URL_LENGTH)] | _Other
PromotedTitle = Annotated[str, Meta(max_length=MAX_TITLE_LENGTH)] | _Other


class PageView(CustomEvent, frozen=True, rename=None, gc=False):
    """One item of /batch and /: a custom event with promoted columns as top-level fields.

    A value of the wrong type is no error; it is not promoted.
    """

    title: PromotedTitle = None
    referrer: PromotedText = None
    language: Any = None
    timezone: Any = None
    screen_resolution: Any = None
    viewport_size: Any = None
    utm_source: Any = None
    utm_medium: Any = None
    utm_campaign: Any = None
    utm_term: Any = None
    utm_content: Any = None
    time_on_page: Any = None
    scroll_depth: Any = None
    interaction_count: Any = None
    page_count: Any = None
    load_time: Any = None
    dom_ready_time: Any = None
    dom_interactive: Any = None
    ttfb: Any = None
    render_time: Any = None
    value: Any = None
    currency: Any = None


class Engagement(Struct, frozen=True, rename="camel", gc=False):
    """One item of /engagement: how a visitor used a page.

    All other keys become the properties of the event.
    """

    anonymous_id: ColumnText | None = None
    session_id: ColumnText | None = None
    timestamp: Timestamp | None = None
    website_id: Text255 | None = None
    event_id: Text512 | None = None
    profile_id: ProfileId | None = None
    path: UrlText | None = None
    url: UrlText | None = None
    ip: Any = None
    user_agent: Any = None


class Identification(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The body of /identify: whose account a visitor has. `traits` becomes a property."""

    anonymous_id: ColumnText | None = None
    session_id: ColumnText | None = None
    timestamp: Timestamp | None = None
    website_id: Text255 | None = None
    event_id: Text512 | None = None
    profile_id: Annotated[str, Meta(min_length=1, max_length=MAX_PROFILE_ID_LENGTH)]
    path: UrlText | None = None
    url: UrlText | None = None
    ip: Any = None
    user_agent: Any = None
    traits: dict[str, Any] | None = None


class WebVital(Struct, frozen=True, rename="camel", gc=False):
    """One item of /vitals."""

    timestamp: Timestamp
    path: UrlText
    metric_name: MetricName
    metric_value: float
    anonymous_id: ColumnText | None = None
    session_id: ColumnText | None = None
    website_id: Text255 | None = None
    event_id: Text512 | None = None
    url: UrlText | None = None
    ip: Any = None
    user_agent: Any = None


class ErrorReport(Struct, frozen=True, rename="camel", gc=False):
    """One item of /errors. A long `message` or `stack` is truncated, not rejected."""

    timestamp: Timestamp
    path: UrlText
    message: str
    filename: UrlText | None = None
    lineno: float | None = None
    colno: float | None = None
    stack: str | None = None
    error_type: Text128 | None = None
    anonymous_id: ColumnText | None = None
    session_id: ColumnText | None = None
    website_id: Text255 | None = None
    event_id: Text512 | None = None
    url: UrlText | None = None
    level: Level | None = None
    ip: Any = None
    user_agent: Any = None


Scalar = str | int | float | bool | None
FilterValue = Scalar | list[Scalar]


class Filter(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One item of a query's filters: a condition, or a group of items.

    A condition has `field`, `operator` and `value`; the valid types of `value` depend on column and
    operator. A group has `any_of` or `all_of`. Decoding rejects an item that is neither.
    """

    field: str | UnsetType = UNSET
    operator: str | UnsetType = UNSET
    value: FilterValue | UnsetType = UNSET
    any_of: list["Filter"] | None = encoded_field(default=None, name="or")
    all_of: list["Filter"] | None = encoded_field(default=None, name="and")


class Select(Struct, frozen=True, forbid_unknown_fields=True):
    """One output column of a query. Its `filters` are single ones."""

    field: str
    aggregate: str
    alias: str | None = None
    filters: list[Filter] | UnsetType | None = UNSET


class OrderBy(Struct, frozen=True, forbid_unknown_fields=True):
    """One sort key."""

    field: str
    direction: str | None = None


class Having(Struct, frozen=True, forbid_unknown_fields=True):
    """One condition for the rows of a result. Wrong types have an error code of their own."""

    field: Any = None
    operator: Any = None
    value: Any = None


class Compare(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The days to compare with. Wrong dates have an error code of their own."""

    start_date: Any = None
    end_date: Any = None


class Query(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The query object of a request."""

    table: str
    selects: list[Select]
    filters: list[Filter] | None = None
    group_by: list[str] | None = None


class QueryRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The body of /v1/query/custom.

    Scalars of the root have no types here, because each has an error code of its own.
    """

    query: Query
    start_date: Any = None
    end_date: Any = None
    timezone: Any = None
    granularity: Any = None
    limit: Any = None
    order_by: list[OrderBy] | None = None
    offset: Any = None
    fill: Any = None
    having: Any = None  # `Having` objects
    last_days: Any = None
    compare: Any = None  # a name, or a `Compare` object
    totals: Any = None
    top: Any = None
    others: Any = None
