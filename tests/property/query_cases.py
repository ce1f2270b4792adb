"""What the comparison with the oracle asks: queries over the data of `query_data`, and faults.

What tells most is drawn most: columns that the data fill, aggregates over several rows, single
days, and ranges at whose ends clocks change.
"""

from copy import deepcopy
from typing import Any

from tests.oracle.check import AGGREGATES, LIST_OPERATORS, ORDER_OPERATORS, TEXT_OPERATORS
from tests.oracle.columns import OTHER_NAMES, TABLES, Column, find_column
from tests.property.chances import Chance, drawn
from tests.property.query_data import (
    BUSY_ZONES,
    EVENT_NAMES,
    FEW_TEXTS,
    LEVELS,
    LONG_NUMBERS,
    METRICS,
    NUMBERS,
    PATHS,
    PEOPLE,
    PROPERTY_KEYS,
    SESSIONS,
    TEXTS,
    ZONES,
    Item,
    moment,
)
from tests.property.query_faults import FAULTS

Body = dict[str, Any]

DATES = (
    *(f"2025-10-{day}" for day in range(22, 32)),
    *("2025-11-01", "2025-11-02", "2025-11-05"),
)
BUSY_DATES = ("2025-10-25", "2025-10-26", "2025-11-02")
_ALL_DAYS = (DATES[0], DATES[-1])
_YEARS_BEFORE = "2016-01-01"
FAR_RANGES = (
    ("2010-11-06", "2010-11-06", "America/St_Johns"),
    ("2010-11-07", "2010-11-07", "America/St_Johns"),
    ("2010-11-06", "2010-11-07", "America/St_Johns"),
    ("2011-12-30", "2011-12-30", "Pacific/Apia"),
    ("2011-12-29", "2011-12-31", "Pacific/Apia"),
    ("2025-03-30", "2025-03-30", "Europe/Berlin"),
    ("2025-03-29", "2025-03-31", "Europe/Berlin"),
    ("2023-06-01", "2025-10-26", "Europe/Berlin"),  # so many changes are looked up in a table
    ("1969-12-31", "1970-01-01", "UTC"),
    ("2299-12-31", "2300-01-01", "Asia/Kolkata"),
)
_TIMES = ("T00:00:00", " 01:30:00", " 02:30:00", "T12:00:00.5", "T23:59:59.999")

# Ids and times of receipt cannot be known; versions are named as the User-Agent library likes.
UNKNOWN = frozenset({"id", "website_id", "received_at", "browser_version", "os_version", "stack"})
COUNTED = ("id", "website_id", "stack")
"""Unknown columns of which it is known how many values they have."""

LIVELY = frozenset(
    (
        *("event_name", "namespace", "source", "anonymous_id", "session_id", "path", "referrer"),
        *("country", "browser_name", "language", "utm_source", "utm_term", "time", "is_bot"),
        *("scroll_depth", "load_time", "value"),
        *("entry_path", "exit_path", "start_time", "end_time", "is_bounce"),
        *("duration", "page_views", "event_count", "session_count", "first_seen", "last_seen"),
        *("message", "level", "error_type", "lineno", "metric_name", "metric_value"),
    )
)
"""The columns that the data fill."""

_POOLS: dict[str, tuple[str, ...]] = {
    "event_name": EVENT_NAMES,
    "namespace": FEW_TEXTS,
    "referrer": FEW_TEXTS,
    "utm_source": FEW_TEXTS,
    "utm_term": FEW_TEXTS,
    "source": ("web", "app"),
    "anonymous_id": PEOPLE,
    "session_id": SESSIONS,
    "path": PATHS,
    "entry_path": PATHS,
    "exit_path": PATHS,
    "country": ("US", "AU"),
    "browser_name": ("Chrome", "Firefox"),
    "os_name": ("Windows", "Linux"),
    "device_type": ("desktop", "bot"),
    "metric_name": METRICS,
    "level": LEVELS,
    "error_type": ("TypeError",),
    "language": ("de", "en"),
}


def columns_of(table: str) -> list[str]:
    """Return the names of columns, those that tell more several times."""
    names = [name for name in TABLES[table] if name not in UNKNOWN]
    lively = [name for name in names if name in LIVELY]
    properties = [f"properties.{key}" for key in PROPERTY_KEYS if table == "events"]
    return names + lively * 6 + properties * 5


def column(table: str, name: str) -> Column:
    found = find_column(table, name)
    assert found is not None
    return found


def _select(chance: Chance, table: str) -> Item:
    names = columns_of(table)
    measures = [name for name in names if column(table, name).aggregatable] or names
    any_names = [*names, *(name for name in COUNTED if name in TABLES[table])]
    field = chance.one(chance.one((["*"], any_names, any_names, measures, measures, measures)))
    select = {"field": field, "aggregate": chance.one(_aggregates(table, field))}
    alias = chance.one(("x", "n n", "Ü🦆", "`", '"', "a.b", "?"))
    return select | ({"alias": alias} if chance.is_so(0.4) else {})


def _aggregates(table: str, field: str) -> tuple[str, ...]:
    """Return what suits a field. Sums of long numbers depend on the order of addition."""
    if field == "*":
        return ("count",)
    if not column(table, field).aggregatable:
        return ("count", "uniq")
    return ("uniq", "max", "min") if field == "properties.long" else AGGREGATES


def _text(chance: Chance, name: str) -> str:
    """Draw a text that the column may have, or a piece of one."""
    text = chance.one(_POOLS.get(name, TEXTS))
    if chance.is_so(0.6):
        return text
    start = chance.whole(0, len(text))
    return text[start : start + chance.whole(0, 3)]


def _iso_moment(chance: Chance) -> str:
    day = chance.one((*DATES, *BUSY_DATES * 6, "2010-11-06", "2010-11-07", "2025-03-30"))
    if chance.is_so(0.2):
        return day
    return day + chance.one(_TIMES) + chance.one(("", "", "", "Z", "+02:00", "-0330"))


def _number(chance: Chance) -> Any:
    number = chance.one((*NUMBERS, *range(6)))
    return str(number) if chance.is_so(0.3) else number


def _property(chance: Chance, name: str) -> Any:
    if name == "properties.long" and chance.is_so(0.7):
        return chance.one((*LONG_NUMBERS, *map(str, LONG_NUMBERS)))
    match chance.whole(0, 4):
        case 0 | 1:
            return chance.one(NUMBERS)
        case 2 | 3:
            return _text(chance, name)
        case _:
            return chance.one((True, False))


def _scalar(chance: Chance, table: str, name: str) -> Any:
    match column(table, name).kind:
        case "text":
            return _text(chance, name)
        case "number":
            return _number(chance)
        case "datetime":
            return chance.one((moment, _iso_moment, _iso_moment))(chance)
        case "boolean":
            return chance.one((True, False))
        case "json":
            return _property(chance, name)


def _filter(chance: Chance, table: str) -> Item:
    names = [name for name in columns_of(table) if column(table, name).filterable]
    kinds = {name: column(table, name).kind for name in names}
    asked = chance.one(("text", *sorted({*kinds.values()})))
    field = chance.one([name for name in names if kinds[name] == asked])
    operators: tuple[str, ...] = ("eq", "ne", *LIST_OPERATORS)
    operators += TEXT_OPERATORS if asked in ("text", "json") else ()
    operators += ORDER_OPERATORS * (3 if asked == "datetime" else 1) if asked != "boolean" else ()
    operator = chance.one(operators)
    values = chance.times(1, 4, lambda chance: _scalar(chance, table, field))
    value = values if operator in LIST_OPERATORS else values[0]
    return {"field": field, "operator": operator, "value": value}


def _body(chance: Chance) -> Body:
    """Draw a body that is valid but for rare accidents (equal names, true compared by order)."""
    table = chance.one((*TABLES, "events", "events", "sessions", "profiles", *OTHER_NAMES))
    real = OTHER_NAMES.get(table, table)
    selects = chance.times(1, 3, lambda chance: _select(chance, real))
    query: Body = {
        "table": table,
        "selects": list({output_name(select): select for select in selects}.values()),
    }
    if chance.is_so(0.6):
        query["filters"] = chance.times(
            1, chance.one((1, 1, 3)), lambda chance: _filter(chance, real)
        )
    if chance.is_so(0.65):
        query["groupBy"] = chance.some(columns_of(real), 1, chance.one((1, 1, 3)))
    return {"query": query} | _range(chance) | _page(chance, query, has_buckets=real != "profiles")


def _range(chance: Chance) -> Body:
    first, last = sorted(chance.one(DATES) for _ in range(2))
    day = chance.one((*BUSY_DATES, first))
    start, end = chance.one((_ALL_DAYS, _ALL_DAYS, _ALL_DAYS, (first, last), (day, day)))
    start = _YEARS_BEFORE if chance.is_so(0.08) else start
    zone = chance.one((*ZONES, *BUSY_ZONES * 2)) if chance.is_so(0.7) else None
    if chance.is_so(0.12):
        start, end, zone = chance.one(FAR_RANGES)
    return {"startDate": start, "endDate": end} | ({"timezone": zone} if zone else {})


def _page(chance: Chance, query: Body, *, has_buckets: bool) -> Body:
    page: Body = {}
    if has_buckets and chance.is_so(0.45):
        page["granularity"] = chance.one(("hourly", "daily", "daily"))
        page["fill"] = chance.one((True, False))
    if chance.is_so(0.4 if page.get("fill") else 0.2 if query.get("groupBy") or page else 0.05):
        page["offset"] = chance.one((0, 1, 2, 5, 12))
    if chance.is_so(0.5):
        page["limit"] = chance.one((chance.whole(1, 12), 1000, 10_000, 10_001))
    if chance.is_so(0.5):
        names = output_names(query, page)
        page["orderBy"] = chance.times(0, 3, lambda chance: _order_key(chance, names))
    return page


def _order_key(chance: Chance, names: list[str]) -> Item:
    direction = chance.one((None, "asc", "desc", "desc"))
    return {"field": chance.one(names)} | ({"direction": direction} if direction else {})


def output_name(select: Item) -> str:
    field = select["field"].replace(".", "_").replace("*", "all")
    return select.get("alias") or f"{select['aggregate']}_{field}"


def output_names(query: Body, page: Body) -> list[str]:
    names = [output_name(select) for select in query["selects"]]
    return [*names, *query.get("groupBy", []), *(["date"] if "granularity" in page else [])]


def _spoilt_body(chance: Chance) -> Body:
    """Draw a body with one or two faults; some of them turn out to be none."""
    body = deepcopy(_body(chance))
    spoil, *others = chance.some(FAULTS, 1, 2)
    for later in others:
        later(body)
    if isinstance(body.get("query"), dict) and body["query"].get("selects"):
        spoil(body)
    return body


bodies = drawn(_body)
any_bodies = drawn(lambda chance: _spoilt_body(chance) if chance.is_so(0.15) else _body(chance))
