"""The catalog: every table, column, aggregate, operator and limit of the query, as data.

Validation, SQL, DDL, the schema endpoint, OpenAPI and the reference pages are made from it.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from msgspec import Struct


class Kind(Enum):
    """What a column's values are."""

    TEXT = "text"
    NUMBER = "number"
    DATETIME = "datetime"
    BOOLEAN = "boolean"
    IDENTIFIER = "identifier"  # text to the caller, sixteen bytes in the store
    JSON = "json"  # one key of `properties`: text, number, boolean, or JSON text


class Column(Struct, frozen=True):
    """One column as the caller sees it, with what the store and the loader need to know of it.

    `max_length` is where a lifted text is cut, in code points. `few_values` asks the store for a
    dictionary. `lifted` columns take their value from the property of the same name.
    """

    name: str
    kind: Kind
    description: str
    filterable: bool = True
    aggregatable: bool = False
    max_length: int = 256
    few_values: bool = False
    lifted: bool = False


class Table(Struct, frozen=True):
    """A queryable table. `time_column` is what the range of dates applies to."""

    name: str
    description: str
    columns: tuple[Column, ...]
    time_column: str
    other_names: tuple[str, ...] = ()
    has_buckets: bool = True
    has_properties: bool = False
    is_derived: bool = False  # made of events when asked, not stored

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
    IN = "in"
    NOT_IN = "not_in"


ANY_COLUMN_AGGREGATES = frozenset({Aggregate.COUNT, Aggregate.UNIQ})
LIST_OPERATORS = frozenset({Operator.IN, Operator.NOT_IN})
TEXT_OPERATORS = frozenset({Operator.CONTAINS, Operator.NOT_CONTAINS, Operator.STARTS_WITH})
BOOLEAN_OPERATORS = frozenset({Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN})

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
    Operator.IN: "one of the values",
    Operator.NOT_IN: "none of the values; missing values match",
}

QUERY_LIMITS: Mapping[str, int] = {
    "maxSelects": 10,
    "maxFilters": 20,
    "maxGroupBy": 5,
    "maxOrderBy": 5,
    "maxFilterValues": 1000,
    "maxAliasLength": 64,
    "maxPropertyKeyLength": 256,
    "defaultLimit": 1000,
    "maxLimit": 10000,
    "maxOffset": 1_000_000,
    "maxRangeYears": 10,
}

PROPERTY_PREFIX = "properties."
DATE_OUTPUT_NAME = "date"
ALL_ROWS = "*"
PAGE_VIEW_NAMES = ("screen_view", "pageview", "page_view")


def property_key(name: str) -> str | None:
    """Return KEY of `properties.KEY`, or None where the name is not one or KEY's length is off."""
    if not name.startswith(PROPERTY_PREFIX):
        return None
    key = name[len(PROPERTY_PREFIX) :]
    return key if 1 <= len(key) <= QUERY_LIMITS["maxPropertyKeyLength"] else None


def _property_column(name: str) -> Column:
    return Column(name, Kind.JSON, "one key of the event's properties", aggregatable=True)


def _text(name: str, description: str, max_length: int = 256, *, lifted: bool = False) -> Column:
    return Column(name, Kind.TEXT, description, max_length=max_length, lifted=lifted)


def _label(name: str, description: str, *, lifted: bool = False) -> Column:
    return Column(name, Kind.TEXT, description, few_values=True, lifted=lifted)


def _measure(name: str, description: str, *, lifted: bool = False) -> Column:
    return Column(name, Kind.NUMBER, description, aggregatable=True, lifted=lifted)


def _moment(name: str, description: str) -> Column:
    return Column(name, Kind.DATETIME, description)


_ID = Column("id", Kind.IDENTIFIER, "unique id of the row", filterable=False)
_WEBSITE = Column("website_id", Kind.TEXT, "the website", filterable=False, few_values=True)
_TIME = _moment("time", "when it happened")
_IS_BOT = Column("is_bot", Kind.BOOLEAN, "sent by a crawler, monitor or headless browser")
_WHO = (
    _text("anonymous_id", "the visitor"),
    _text("session_id", "the session"),
)
_WHERE = (
    _label("country", "ISO 3166-1 alpha-2 code of the visitor's country"),
    _label("region", "region of the visitor"),
    _label("city", "city of the visitor"),
)
_BROWSER = _label("browser_name", "browser, such as Chrome")
_OS = _label("os_name", "operating system, such as macOS")
_DEVICE = _label("device_type", "desktop, mobile, tablet, tv, console or bot; empty when unknown")
_SOFTWARE = (
    _BROWSER,
    _label("browser_version", "version of the browser"),
    _OS,
    _label("os_version", "version of the operating system"),
    _DEVICE,
)
_LANGUAGE = _label("language", "language of the browser", lifted=True)
_REFERRER = _text("referrer", "where the visitor came from", 2048, lifted=True)
_CAMPAIGN = tuple(
    _label(f"utm_{part}", f"utm_{part} of the campaign", lifted=True)
    for part in ("source", "medium", "campaign", "term", "content")
)

EVENTS = Table(
    "events",
    "page views and custom events",
    (
        _ID,
        _WEBSITE,
        _label("event_name", "name of the event"),
        _label("namespace", "grouping namespace"),
        _label("source", "event source identifier"),
        *_WHO,
        _text("url", "whole URL of the page", 2048, lifted=True),
        _text("path", "path of the page", 2048, lifted=True),
        _text("title", "title of the page", 512, lifted=True),
        _REFERRER,
        *_WHERE,
        *_SOFTWARE,
        _LANGUAGE,
        _label("timezone", "timezone of the browser", lifted=True),
        _label("screen_resolution", "screen size, such as 1920x1080", lifted=True),
        _label("viewport_size", "window size", lifted=True),
        *_CAMPAIGN,
        _label("currency", "currency of the revenue", lifted=True),
        _TIME,
        _moment("received_at", "when it was received"),
        _IS_BOT,
        _measure("time_on_page", "time on the page, as sent", lifted=True),
        _measure("scroll_depth", "scroll depth, as sent", lifted=True),
        _measure("interaction_count", "interactions with the page", lifted=True),
        _measure("page_count", "pages of the session so far", lifted=True),
        _measure("load_time", "load time in milliseconds", lifted=True),
        _measure("dom_ready_time", "time until the DOM was ready, in milliseconds", lifted=True),
        _measure("dom_interactive", "time until interactive, in milliseconds", lifted=True),
        _measure("ttfb", "time to first byte in milliseconds", lifted=True),
        _measure("render_time", "render time in milliseconds", lifted=True),
        _measure("value", "revenue", lifted=True),
    ),
    time_column="time",
    has_properties=True,
)

SESSIONS = Table(
    "sessions",
    "session-level data, made of all events that share a session id",
    (
        _WHO[1],
        _WHO[0],
        _text("entry_path", "path of the first event that has one", 2048),
        _text("exit_path", "path of the last event that has one", 2048),
        _REFERRER,
        *_WHERE,
        _BROWSER,
        _OS,
        _DEVICE,
        _LANGUAGE,
        *_CAMPAIGN,
        _moment("start_time", "time of the first event"),
        _moment("end_time", "time of the last event"),
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
        _WHO[0],
        _REFERRER,
        *_CAMPAIGN,
        *_WHERE,
        _BROWSER,
        _OS,
        _DEVICE,
        _LANGUAGE,
        _moment("first_seen", "time of the first event"),
        _moment("last_seen", "time of the last event"),
        _measure("session_count", "distinct sessions"),
        _measure("event_count", "all events, page views included"),
        _measure("page_views", "page views"),
    ),
    time_column="time",
    has_buckets=False,
    is_derived=True,
)

_STACK = Column("stack", Kind.TEXT, "stack trace", filterable=False, max_length=65_536)

ERRORS = Table(
    "errors",
    "JavaScript errors",
    (
        _ID,
        _WEBSITE,
        _STACK,
        _text("message", "error message", 4096),
        _label("level", "debug, info, warning, error or fatal"),
        _label("error_type", "type of the error, such as TypeError"),
        _text("filename", "source file", 2048),
        _text("path", "path of the page", 2048),
        _text("url", "whole URL of the page", 2048),
        *_WHO,
        *_WHERE,
        *_SOFTWARE,
        _TIME,
        _IS_BOT,
        Column("lineno", Kind.NUMBER, "line number"),
        Column("colno", Kind.NUMBER, "column number"),
    ),
    time_column="time",
    other_names=("error_spans",),
)

PERFORMANCE = Table(
    "performance",
    "web vitals and performance metrics",
    (
        _ID,
        _WEBSITE,
        _label("metric_name", "FCP, LCP, CLS, INP, TTFB or FPS"),
        _text("path", "path of the page", 2048),
        _text("url", "whole URL of the page", 2048),
        *_WHO,
        *_WHERE,
        *_SOFTWARE,
        _TIME,
        _IS_BOT,
        _measure("metric_value", "value of the metric"),
    ),
    time_column="time",
    other_names=("web_vitals_spans",),
)

TABLES: tuple[Table, ...] = (EVENTS, SESSIONS, PROFILES, ERRORS, PERFORMANCE)
STORED_TABLES: tuple[Table, ...] = tuple(table for table in TABLES if not table.is_derived)
LIFTED_COLUMNS: tuple[Column, ...] = tuple(column for column in EVENTS.columns if column.lifted)

_TABLES_BY_NAME: Mapping[str, Table] = {
    name: table for table in TABLES for name in (table.name, *table.other_names)
}


def find_table(name: str) -> Table | None:
    """Find a table by its name or one of its other names."""
    return _TABLES_BY_NAME.get(name)


def table_names() -> Iterator[str]:
    """All names under which tables can be asked for, other names included."""
    return iter(_TABLES_BY_NAME)
