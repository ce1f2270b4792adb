"""The catalog: every table, column, aggregate, operator and limit of the query, as data.

Validation, SQL, DDL, the schema endpoint, OpenAPI and the reference pages are derived from it.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from msgspec import Struct

MAX_TEXT_LENGTH = 256
MAX_PROFILE_ID_LENGTH = 128
MAX_TITLE_LENGTH = 512
MAX_URL_LENGTH = 2048
MAX_MESSAGE_LENGTH = 4096
MAX_STACK_LENGTH = 65_536
FINGERPRINT_LENGTH = 16
"""The longest texts, in code points: of columns, and of the request fields that fill them."""


class Kind(Enum):
    """The type of a column's values."""

    TEXT = "text"
    NUMBER = "number"
    DATETIME = "datetime"
    BOOLEAN = "boolean"
    IDENTIFIER = "identifier"  # text to the caller, sixteen bytes in the store
    JSON = "json"  # one key of `properties`: text, number, boolean, or JSON text
    DIGEST = "digest"  # eight bytes in the store, shown to nobody


class Column(Struct, frozen=True):
    """One column as the caller sees it, with the attributes that the store and the loader use.

    Promoted texts are truncated to `max_length` code points. `low_cardinality` requests dictionary
    encoding from the store. `promoted` columns get the value of the property of the same name.
    The values of an `is_rated` column are good or poor by `VITAL_THRESHOLDS`. The store
    computes an `is_generated` column of others; it is neither inserted nor exported.
    """

    name: str
    kind: Kind
    description: str
    filterable: bool = True
    aggregatable: bool = False
    max_length: int = MAX_TEXT_LENGTH
    low_cardinality: bool = False
    promoted: bool = False
    is_rated: bool = False
    is_generated: bool = False


class Table(Struct, frozen=True):
    """A queryable table. The date range applies to `time_column`."""

    name: str
    description: str
    columns: tuple[Column, ...]
    time_column: str
    aliases: tuple[str, ...] = ()
    supports_granularity: bool = True
    has_properties: bool = False
    is_derived: bool = False  # computed from events by each query, not stored

    def column(self, name: str) -> Column | None:
        """Find a column, `properties.KEY` included where the table has them."""
        for column in self.columns:
            if column.name == name:
                return column
        key = property_key(name) if self.has_properties else None
        return None if key is None else _property_column(name)


class Aggregate(Enum):
    """Aggregation functions."""

    COUNT = "count"
    UNIQ = "uniq"
    SUM = "sum"
    AVG = "avg"
    MAX = "max"
    MIN = "min"
    P50 = "p50"
    P75 = "p75"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    EARLIEST = "earliest"
    LATEST = "latest"
    GOOD_SHARE = "good_share"
    NEEDS_IMPROVEMENT_SHARE = "needs_improvement_share"
    POOR_SHARE = "poor_share"


class Operator(Enum):
    """Filter operators."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    LT = "lt"
    GTE = "gte"
    LTE = "lte"
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    STARTS_WITH = "starts_with"
    NOT_STARTS_WITH = "not_starts_with"
    ENDS_WITH = "ends_with"
    NOT_ENDS_WITH = "not_ends_with"
    MATCHES = "matches"
    NOT_MATCHES = "not_matches"
    IN = "in"
    NOT_IN = "not_in"
    IS_SET = "is_set"
    IS_NOT_SET = "is_not_set"


ANY_COLUMN_AGGREGATES = frozenset({Aggregate.COUNT, Aggregate.UNIQ})
DATETIME_AGGREGATES = frozenset({Aggregate.EARLIEST, Aggregate.LATEST})
SHARE_AGGREGATES = frozenset(
    {Aggregate.GOOD_SHARE, Aggregate.NEEDS_IMPROVEMENT_SHARE, Aggregate.POOR_SHARE}
)
NUMBER_AGGREGATES = (
    frozenset(Aggregate) - ANY_COLUMN_AGGREGATES - DATETIME_AGGREGATES - SHARE_AGGREGATES
)
LIST_OPERATORS = frozenset({Operator.IN, Operator.NOT_IN})
PATTERN_OPERATORS = frozenset({Operator.MATCHES, Operator.NOT_MATCHES})
TEXT_OPERATORS = PATTERN_OPERATORS | {
    Operator.CONTAINS,
    Operator.NOT_CONTAINS,
    Operator.STARTS_WITH,
    Operator.NOT_STARTS_WITH,
    Operator.ENDS_WITH,
    Operator.NOT_ENDS_WITH,
}
PRESENCE_OPERATORS = frozenset({Operator.IS_SET, Operator.IS_NOT_SET})
HAVING_OPERATORS = (
    Operator.EQ,
    Operator.NE,
    Operator.GT,
    Operator.LT,
    Operator.GTE,
    Operator.LTE,
)
BOOLEAN_OPERATORS = LIST_OPERATORS | PRESENCE_OPERATORS | {Operator.EQ, Operator.NE}

AGGREGATE_DESCRIPTIONS: Mapping[Aggregate, str] = {
    Aggregate.COUNT: "rows, whatever the field",
    Aggregate.UNIQ: "distinct values, exactly; missing ones are left out",
    Aggregate.SUM: "sum; 0 over no rows",
    Aggregate.AVG: "mean; null over no rows",
    Aggregate.MAX: "greatest; null over no rows",
    Aggregate.MIN: "least; null over no rows",
    Aggregate.P50: "median, exact, interpolated between the closest ranks",
    Aggregate.P75: "75th percentile, exact, interpolated",
    Aggregate.P90: "90th percentile, exact, interpolated",
    Aggregate.P95: "95th percentile, exact, interpolated",
    Aggregate.P99: "99th percentile, exact, interpolated",
    Aggregate.EARLIEST: "first datetime; null over no rows",
    Aggregate.LATEST: "last datetime; null over no rows",
    Aggregate.GOOD_SHARE: "share of web vitals that are good, 0 to 1; null over none",
    Aggregate.NEEDS_IMPROVEMENT_SHARE: "share of those between good and poor; null over none",
    Aggregate.POOR_SHARE: "share of web vitals that are poor, 0 to 1; null over none",
}

OPERATOR_DESCRIPTIONS: Mapping[Operator, str] = {
    Operator.EQ: "equals",
    Operator.NE: "does not equal; missing values match",
    Operator.GT: "greater than; texts by code point",
    Operator.LT: "less than; texts by code point",
    Operator.GTE: "greater than or equal",
    Operator.LTE: "less than or equal",
    Operator.CONTAINS: "text that contains the value, literally and case-sensitively",
    Operator.NOT_CONTAINS: "text that does not contain the value",
    Operator.STARTS_WITH: "text that starts with the value",
    Operator.NOT_STARTS_WITH: "text that does not start with the value",
    Operator.ENDS_WITH: "text that ends with the value",
    Operator.NOT_ENDS_WITH: "text that does not end with the value",
    Operator.MATCHES: "text in which the regular expression (RE2) is found",
    Operator.NOT_MATCHES: "text in which the regular expression is not found",
    Operator.IN: "one of the values",
    Operator.NOT_IN: "none of the values; missing values match",
    Operator.IS_SET: "has a value: neither null nor the empty text; takes no value",
    Operator.IS_NOT_SET: "has no value: null or the empty text; takes no value",
}

QUERY_LIMITS: Mapping[str, int] = {
    "maxSelects": 10,
    "maxFilters": 20,
    "maxFilterDepth": 3,
    "maxSelectFilters": 5,
    "maxGroupBy": 5,
    "maxOrderBy": 5,
    "maxHaving": 10,
    "maxTop": 100,
    "maxFilterValues": 1000,
    "maxPatternLength": 256,
    "maxAliasLength": 64,
    "maxPropertyKeyLength": 256,
    "defaultLimit": 1000,
    "maxLimit": 10000,
    "maxOffset": 1_000_000,
    "maxRangeYears": 10,
    "maxLastDays": 3652,
    "minFunnelSteps": 2,
    "maxFunnelSteps": 10,
    "defaultFunnelWindow": 86_400,
    "maxFunnelWindow": 7_776_000,
    "maxFunnelGroups": 1000,
    "maxPeriods": 60,
    "maxSearchLength": 256,
    "defaultValues": 100,
    "maxValues": 1000,
    "defaultValuesDays": 30,
    "maxTypes": 20,
    "defaultTypeLimit": 10,
    "maxTypeLimit": 100,
    "maxSchemaNames": 1000,
    "schemaDays": 30,
}

VITAL_THRESHOLDS: Mapping[str, tuple[float, float]] = {
    "LCP": (2_500, 4_000),
    "FCP": (1_800, 3_000),
    "INP": (200, 500),
    "TTFB": (800, 1_800),
    "CLS": (0.1, 0.25),
}
"""The published thresholds by metric: up to the first a value is good, above the second poor."""

PROPERTY_PREFIX = "properties."
DATE_OUTPUT_NAME = "date"
PREVIOUS_OUTPUT_NAME = "previous"
ALL_ROWS = "*"
PAGE_VIEW_NAMES = ("screen_view", "pageview", "page_view")


def property_key(name: str) -> str | None:
    """Return KEY of `properties.KEY`, or None for other names and keys of invalid length."""
    if not name.startswith(PROPERTY_PREFIX):
        return None
    key = name[len(PROPERTY_PREFIX) :]
    return key if 1 <= len(key) <= QUERY_LIMITS["maxPropertyKeyLength"] else None


def _property_column(name: str) -> Column:
    return Column(name, Kind.JSON, "one key of the event's properties", aggregatable=True)


def _text(
    name: str, description: str, max_length: int = MAX_TEXT_LENGTH, *, promoted: bool = False
) -> Column:
    return Column(name, Kind.TEXT, description, max_length=max_length, promoted=promoted)


def _dimension(name: str, description: str, *, promoted: bool = False) -> Column:
    return Column(name, Kind.TEXT, description, low_cardinality=True, promoted=promoted)


def _measure(name: str, description: str, *, promoted: bool = False) -> Column:
    return Column(name, Kind.NUMBER, description, aggregatable=True, promoted=promoted)


def _datetime(name: str, description: str) -> Column:
    return Column(name, Kind.DATETIME, description)


_ID = Column("id", Kind.IDENTIFIER, "unique id of the row", filterable=False)
_WEBSITE = Column("website_id", Kind.TEXT, "the website", filterable=False, low_cardinality=True)
_TIME = _datetime("time", "when it happened")
_IS_BOT = Column("is_bot", Kind.BOOLEAN, "sent by a crawler, monitor or headless browser")
_VISITOR_IDS = (
    _text("anonymous_id", "the visitor"),
    _text("session_id", "the session"),
)
_LOCATION = (
    _dimension("country", "ISO 3166-1 alpha-2 code of the visitor's country"),
    _dimension("region", "region of the visitor"),
    _dimension("city", "city of the visitor"),
)
_BROWSER = _dimension("browser_name", "browser, such as Chrome")
_OS = _dimension("os_name", "operating system, such as macOS")
_DEVICE = _dimension(
    "device_type", "desktop, mobile, tablet, tv, console or bot; empty when unknown"
)
_USER_AGENT = (
    _BROWSER,
    _dimension("browser_version", "version of the browser"),
    _OS,
    _dimension("os_version", "version of the operating system"),
    _DEVICE,
)
_LANGUAGE = _dimension("language", "language of the browser", promoted=True)
_REFERRER = _text("referrer", "where the visitor came from", MAX_URL_LENGTH, promoted=True)
_CAMPAIGN = tuple(
    _dimension(f"utm_{part}", f"utm_{part} of the campaign", promoted=True)
    for part in ("source", "medium", "campaign", "term", "content")
)

EVENTS = Table(
    "events",
    "page views and custom events",
    (
        _ID,
        _WEBSITE,
        _dimension("event_name", "name of the event"),
        _dimension("namespace", "grouping namespace"),
        _dimension("source", "event source identifier"),
        *_VISITOR_IDS,
        _text("profile_id", "the visitor as identified by the sender", MAX_PROFILE_ID_LENGTH),
        _text("url", "whole URL of the page", MAX_URL_LENGTH, promoted=True),
        _text("path", "path of the page", MAX_URL_LENGTH, promoted=True),
        _text("title", "title of the page", MAX_TITLE_LENGTH, promoted=True),
        _REFERRER,
        *_LOCATION,
        *_USER_AGENT,
        _LANGUAGE,
        _dimension("timezone", "timezone of the browser", promoted=True),
        _dimension("screen_resolution", "screen size, such as 1920x1080", promoted=True),
        _dimension("viewport_size", "window size", promoted=True),
        *_CAMPAIGN,
        _dimension("currency", "currency of the revenue", promoted=True),
        _TIME,
        _datetime("received_at", "when it was received"),
        _IS_BOT,
        _measure("time_on_page", "time on the page, as sent", promoted=True),
        _measure("scroll_depth", "scroll depth, as sent", promoted=True),
        _measure("interaction_count", "interactions with the page", promoted=True),
        _measure("page_count", "pages of the session so far", promoted=True),
        _measure("load_time", "load time in milliseconds", promoted=True),
        _measure("dom_ready_time", "time until the DOM was ready, in milliseconds", promoted=True),
        _measure("dom_interactive", "time until interactive, in milliseconds", promoted=True),
        _measure("ttfb", "time to first byte in milliseconds", promoted=True),
        _measure("render_time", "render time in milliseconds", promoted=True),
        _measure("value", "revenue", promoted=True),
    ),
    time_column="time",
    has_properties=True,
)

SESSIONS = Table(
    "sessions",
    "session-level data, made of all events that share a session id",
    (
        _VISITOR_IDS[1],
        _VISITOR_IDS[0],
        _text("entry_path", "path of the first event that has one", MAX_URL_LENGTH),
        _text("exit_path", "path of the last event that has one", MAX_URL_LENGTH),
        _REFERRER,
        *_LOCATION,
        _BROWSER,
        _OS,
        _DEVICE,
        _LANGUAGE,
        *_CAMPAIGN,
        _datetime("start_time", "time of the first event"),
        _datetime("end_time", "time of the last event"),
        Column("is_bounce", Kind.BOOLEAN, "at most one page view and under 10 seconds"),
        _measure("duration", "last minus first event, in seconds"),
        _measure("page_views", "page views"),
        _measure("event_count", "all events, page views included"),
    ),
    time_column="start_time",
    is_derived=True,
)

PROFILES = Table(
    "profiles",
    "user profile data, made of all events that share an anonymous id",
    (
        _VISITOR_IDS[0],
        _REFERRER,
        *_CAMPAIGN,
        *_LOCATION,
        _BROWSER,
        _OS,
        _DEVICE,
        _LANGUAGE,
        _datetime("first_seen", "time of the first event"),
        _datetime("last_seen", "time of the last event"),
        _measure("session_count", "distinct sessions"),
        _measure("event_count", "all events, page views included"),
        _measure("page_views", "page views"),
    ),
    time_column="time",
    supports_granularity=False,
    is_derived=True,
)

_STACK = Column("stack", Kind.TEXT, "stack trace", filterable=False, max_length=MAX_STACK_LENGTH)

ERRORS = Table(
    "errors",
    "JavaScript errors",
    (
        _ID,
        _WEBSITE,
        _STACK,
        _text("message", "error message", MAX_MESSAGE_LENGTH),
        Column(
            "fingerprint",
            Kind.TEXT,
            "16 hexadecimal digits, the same for errors of one type, message and first frame",
            max_length=FINGERPRINT_LENGTH,
            is_generated=True,
        ),
        _dimension("level", "debug, info, warning, error or fatal"),
        _dimension("error_type", "type of the error, such as TypeError"),
        _text("filename", "source file", MAX_URL_LENGTH),
        _text("path", "path of the page", MAX_URL_LENGTH),
        _text("url", "whole URL of the page", MAX_URL_LENGTH),
        *_VISITOR_IDS,
        *_LOCATION,
        *_USER_AGENT,
        _TIME,
        _IS_BOT,
        Column("lineno", Kind.NUMBER, "line number"),
        Column("colno", Kind.NUMBER, "column number"),
    ),
    time_column="time",
    aliases=("error_spans",),
)

PERFORMANCE = Table(
    "performance",
    "web vitals and performance metrics",
    (
        _ID,
        _WEBSITE,
        _dimension("metric_name", "FCP, LCP, CLS, INP, TTFB or FPS"),
        _text("path", "path of the page", MAX_URL_LENGTH),
        _text("url", "whole URL of the page", MAX_URL_LENGTH),
        *_VISITOR_IDS,
        *_LOCATION,
        *_USER_AGENT,
        _TIME,
        _IS_BOT,
        Column(
            "metric_value", Kind.NUMBER, "value of the metric", aggregatable=True, is_rated=True
        ),
    ),
    time_column="time",
    aliases=("web_vitals_spans",),
)

TABLES: tuple[Table, ...] = (EVENTS, SESSIONS, PROFILES, ERRORS, PERFORMANCE)
STORED_TABLES: tuple[Table, ...] = tuple(table for table in TABLES if not table.is_derived)
PROMOTED_COLUMNS: tuple[Column, ...] = tuple(column for column in EVENTS.columns if column.promoted)

_TABLES_BY_NAME: Mapping[str, Table] = {
    name: table for table in TABLES for name in (table.name, *table.aliases)
}


def find_table(name: str) -> Table | None:
    """Find a table by its name or an alias."""
    return _TABLES_BY_NAME.get(name)


def table_names() -> Iterator[str]:
    """Return all names of tables, aliases included."""
    return iter(_TABLES_BY_NAME)
