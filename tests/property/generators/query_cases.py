"""Queries for the comparison with the oracle, over the data of `query_data`, and errors in them.

The most revealing cases are drawn most often: columns that the data fill, aggregates over several
rows, single days, and ranges that end at clock changes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import chain
from typing import Any

from tests.oracle.check import (
    DATETIME_AGGREGATES,
    LIST_OPERATORS,
    NUMBER_AGGREGATES,
    ORDER_OPERATORS,
    PATTERN_OPERATORS,
    PRESENCE_OPERATORS,
    SHARE_AGGREGATES,
    TEXT_OPERATORS,
)
from tests.oracle.columns import ALIASES, TABLES, Column, find_column
from tests.oracle.fingerprint import fingerprint
from tests.property.generators.chances import SeededRandom, random_strategy
from tests.property.generators.query_data import (
    ANONYMOUS_IDS,
    ERROR_MESSAGES,
    EVENT_NAMES,
    FREQUENT_ZONES,
    LEVELS,
    LONG_NUMBERS,
    METRICS,
    NUMBERS,
    PATHS,
    PROFILE_IDS,
    PROPERTY_KEYS,
    REPEATED_TEXTS,
    SESSIONS,
    STACKS,
    TEXTS,
    ZONES,
    Item,
    random_timestamp,
)
from tests.property.generators.query_faults import SINGLE_ERRORS

Body = dict[str, Any]

DATES = (
    *(f"2025-10-{day}" for day in range(22, 32)),
    *("2025-11-01", "2025-11-02", "2025-11-05"),
)
DENSE_DATES = ("2025-10-25", "2025-10-26", "2025-11-02")
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
    ("2023-06-01", "2025-10-26", "Europe/Berlin"),  # enough clock changes for a lookup table
    ("1969-12-31", "1970-01-01", "UTC"),
    ("2299-12-31", "2300-01-01", "Asia/Kolkata"),
)
_MAX_DEPTH = 3
_GROUP_SHARES = (0.3, 0.4, 0.5)
"""How often an item is a group, at each depth."""

_PATTERN_PARTS = (
    *(
        "",
        "",
        "^",
        "$",
        ".",
        ".*",
        "?",
        "*",
        "+",
        "|",
        "{2}",
        "(?i)",
        "(?i)k",
        "(?s)",
        "[a-z]",
        "[^/]",
        "(a|)",
    ),
    *(r"\w", r"\d", r"\s", r"\b", r"\pL", "é?", "🦆*", "\n", "(", "(?=a)"),
)
_TIMES = ("T00:00:00", " 01:30:00", " 02:30:00", "T12:00:00.5", "T23:59:59.999")

# Ids and receipt times are unpredictable; the User-Agent library determines the versions.
UNKNOWN = frozenset({"id", "website_id", "received_at", "browser_version", "os_version", "stack"})
COUNTED = ("id", "website_id", "stack")
"""Columns with unknown values whose number of distinct values is known."""

NON_TRIVIAL = frozenset(
    (
        *("event_name", "namespace", "source", "anonymous_id", "session_id", "profile_id", "path"),
        *("referrer",),
        *("country", "browser_name", "language", "utm_source", "utm_term", "time", "is_bot"),
        *("scroll_depth", "load_time", "value"),
        *("entry_path", "exit_path", "start_time", "end_time", "is_bounce"),
        *("duration", "page_views", "event_count", "session_count", "first_seen", "last_seen"),
        *("message", "fingerprint", "level", "error_type", "lineno", "metric_name", "metric_value"),
    )
)
"""The columns that the data fill."""

_POOLS: dict[str, tuple[str, ...]] = {
    "event_name": EVENT_NAMES,
    "namespace": REPEATED_TEXTS,
    "referrer": REPEATED_TEXTS,
    "utm_source": REPEATED_TEXTS,
    "utm_term": REPEATED_TEXTS,
    "source": ("web", "app"),
    "anonymous_id": ANONYMOUS_IDS,
    "session_id": SESSIONS,
    "profile_id": PROFILE_IDS,
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
    "fingerprint": tuple(
        fingerprint("TypeError", message, stack) for message in ERROR_MESSAGES for stack in STACKS
    ),
    "language": ("de", "en"),
}


@cache
def columns_of(table: str) -> Sequence[str]:
    """Return the names of columns; revealing columns occur several times."""
    names = [name for name in TABLES[table] if name not in UNKNOWN]
    non_trivial = [name for name in names if name in NON_TRIVIAL]
    properties = [f"properties.{key}" for key in PROPERTY_KEYS if table == "events"]
    return (*names, *non_trivial * 6, *properties * 5)


@cache
def _measures_of(table: str) -> Sequence[str]:
    names = columns_of(table)
    return tuple(name for name in names if column(table, name).aggregatable) or names


@cache
def _filterable_of(table: str) -> Mapping[str, Sequence[str]]:
    """Return the names of filterable columns by kind."""
    kinds: dict[str, list[str]] = {}
    for name in columns_of(table):
        if column(table, name).filterable:
            kinds.setdefault(column(table, name).kind, []).append(name)
    return kinds


def column(table: str, name: str) -> Column:
    found = find_column(table, name)
    assert found is not None
    return found


def _select(random_source: SeededRandom, table: str) -> Item:
    names = columns_of(table)
    measures = _measures_of(table)
    all_names = [*names, *(name for name in COUNTED if name in TABLES[table])]
    field = random_source.choice(
        random_source.choice((["*"], all_names, all_names, measures, measures, measures))
    )
    select: Item = {
        "field": field,
        "aggregate": random_source.choice(_aggregates(table, field)),
    }
    alias = random_source.choice(("x", "n n", "Ü🦆", "`", '"', "a.b", "?"))
    select |= {"alias": alias} if random_source.has_probability(0.4) else {}
    if random_source.has_probability(0.3):
        select["filters"] = random_source.times(
            1, 2, lambda random_source: _filter(random_source, table)
        )
    return select


def _aggregates(table: str, field: str) -> tuple[str, ...]:
    """Return the aggregates for a field. Sums of long numbers depend on the order of addition."""
    if field == "*":
        return ("count",)
    if column(table, field).kind == "datetime":
        return ("count", "uniq", *DATETIME_AGGREGATES * 2)
    if not column(table, field).aggregatable:
        return ("count", "uniq")
    if field == "metric_value":
        return ("uniq", *NUMBER_AGGREGATES, *SHARE_AGGREGATES * 2)
    return (
        ("uniq", "max", "min")
        if field == "properties.long"
        else ("count", "uniq", *NUMBER_AGGREGATES)
    )


def draw_text(random_source: SeededRandom, name: str) -> str:
    """Draw a text that the column may contain, or a part of one."""
    text = random_source.choice(_POOLS.get(name, TEXTS))
    if random_source.has_probability(0.6):
        return text
    start = random_source.integer(0, len(text))
    return text[start : start + random_source.integer(0, 3)]


def _pattern(random_source: SeededRandom, name: str) -> str:
    """Draw a regular expression: parts of texts of the column between parts of patterns."""
    text = draw_text(random_source, name)
    literal = text if random_source.has_probability(0.3) else re.escape(text)
    before, after = (random_source.choice(_PATTERN_PARTS) for _ in range(2))
    return random_source.choice((literal, before + literal + after, before + after))


def _iso_timestamp(random_source: SeededRandom) -> str:
    day = random_source.choice((*DATES, *DENSE_DATES * 6, "2010-11-06", "2010-11-07", "2025-03-30"))
    if random_source.has_probability(0.2):
        return day
    return (
        day
        + random_source.choice(_TIMES)
        + random_source.choice(("", "", "", "Z", "+02:00", "-0330"))
    )


def _number(random_source: SeededRandom) -> Any:
    number = random_source.choice((*NUMBERS, *range(6)))
    return str(number) if random_source.has_probability(0.3) else number


def _property(random_source: SeededRandom, name: str) -> Any:
    if name == "properties.long" and random_source.has_probability(0.7):
        return random_source.choice((*LONG_NUMBERS, *map(str, LONG_NUMBERS)))
    match random_source.integer(0, 4):
        case 0 | 1:
            return random_source.choice(NUMBERS)
        case 2 | 3:
            return draw_text(random_source, name)
        case _:
            return random_source.choice((True, False))


def _scalar(random_source: SeededRandom, table: str, name: str) -> Any:
    match column(table, name).kind:
        case "text":
            return draw_text(random_source, name)
        case "number":
            return _number(random_source)
        case "datetime":
            return random_source.choice((random_timestamp, _iso_timestamp, _iso_timestamp))(
                random_source
            )
        case "boolean":
            return random_source.choice((True, False))
        case "json":
            return _property(random_source, name)


def _filter(random_source: SeededRandom, table: str) -> Item:
    kinds = _filterable_of(table)
    kind = random_source.choice(("text", *sorted(kinds)))
    field = random_source.choice(kinds[kind])
    operators: tuple[str, ...] = ("eq", "ne", *LIST_OPERATORS, *PRESENCE_OPERATORS)
    operators += TEXT_OPERATORS if kind in ("text", "json") else ()
    operators += ORDER_OPERATORS * (3 if kind == "datetime" else 1) if kind != "boolean" else ()
    operator = random_source.choice(operators)
    if operator in PRESENCE_OPERATORS:
        absent = {"value": None} if random_source.has_probability(0.2) else {}
        return {"field": field, "operator": operator, **absent}
    if operator in PATTERN_OPERATORS:
        return {"field": field, "operator": operator, "value": _pattern(random_source, field)}
    values = random_source.times(1, 4, lambda random_source: _scalar(random_source, table, field))
    value = values if operator in LIST_OPERATORS else values[0]
    return {"field": field, "operator": operator, "value": value}


def filter_item(random_source: SeededRandom, table: str, depth: int = 0) -> Item:
    """Draw a filter, or a group of them up to three deep."""
    if depth == _MAX_DEPTH or not random_source.has_probability(_GROUP_SHARES[depth]):
        return _filter(random_source, table)
    items = random_source.times(
        1, 3 - depth // 2, lambda random_source: filter_item(random_source, table, depth + 1)
    )
    return {random_source.choice(("or", "or", "and")): items}


def single_filters(items: list[Item]) -> Iterator[Item]:
    """Return the filters among items, those within groups included."""
    for item in items:
        groups = [item[key] for key in ("or", "and") if key in item]
        yield from chain.from_iterable(map(single_filters, groups)) if groups else (item,)


def draw_body(random_source: SeededRandom) -> Body:
    """Draw a body that is valid except for rare accidents (equal names, true compared by order)."""
    table = random_source.choice((*TABLES, "events", "events", "sessions", "profiles", *ALIASES))
    real = ALIASES.get(table, table)
    selects = random_source.times(1, 3, lambda random_source: _select(random_source, real))
    query: Body = {
        "table": table,
        "selects": list({output_name(select): select for select in selects}.values()),
    }
    if random_source.has_probability(0.6):
        query["filters"] = random_source.times(
            1,
            random_source.choice((1, 1, 3)),
            lambda random_source: filter_item(random_source, real),
        )
    if random_source.has_probability(0.65):
        query["groupBy"] = random_source.sample(
            columns_of(real), 1, random_source.choice((1, 1, 3))
        )
    return (
        {"query": query}
        | draw_range(random_source)
        | _page(random_source, query, has_buckets=real != "profiles")
    )


def draw_range(random_source: SeededRandom) -> Body:
    first, last = sorted(random_source.choice(DATES) for _ in range(2))
    day = random_source.choice((*DENSE_DATES, first))
    start, end = random_source.choice((_ALL_DAYS, _ALL_DAYS, _ALL_DAYS, (first, last), (day, day)))
    start = _YEARS_BEFORE if random_source.has_probability(0.08) else start
    zone = (
        random_source.choice((*ZONES, *FREQUENT_ZONES * 2))
        if random_source.has_probability(0.7)
        else None
    )
    if random_source.has_probability(0.12):
        start, end, zone = random_source.choice(FAR_RANGES)
    return {"startDate": start, "endDate": end} | ({"timezone": zone} if zone else {})


def _page(random_source: SeededRandom, query: Body, *, has_buckets: bool) -> Body:
    page: Body = {}
    if has_buckets and random_source.has_probability(0.45):
        page["granularity"] = random_source.choice(
            ("hourly", "daily", "daily", "weekly", "monthly")
        )
        page["fill"] = random_source.choice((True, False))
    if random_source.has_probability(
        0.4 if page.get("fill") else 0.2 if query.get("groupBy") or page else 0.05
    ):
        page["offset"] = random_source.choice((0, 1, 2, 5, 12))
    if random_source.has_probability(0.5):
        page["limit"] = random_source.choice((random_source.integer(1, 12), 1000, 10_000, 10_001))
    if not page.get("fill") and random_source.has_probability(0.25):
        page["having"] = random_source.times(
            0, 2, lambda random_source: _having(random_source, query)
        )
    if query.get("groupBy") and "granularity" in page and random_source.has_probability(0.6):
        page["top"] = random_source.choice((1, 1, 1, 2, 2, 3, 5, 100))
        page["others"] = random_source.choice((True, True, True, False, None))
    if random_source.has_probability(0.35):
        page["compare"] = random_source.choice(
            (
                *("previous_period", "previous_period", "previous_year"),
                dict(
                    zip(("startDate", "endDate"), random_source.choice(FAR_RANGES)[:2], strict=True)
                ),
                dict(
                    zip(
                        ("startDate", "endDate"),
                        sorted(random_source.choice(DATES) for _ in range(2)),
                        strict=True,
                    )
                ),
            )
        )
    if random_source.has_probability(0.3):
        page["totals"] = random_source.choice((True, True, False, None))
    if random_source.has_probability(0.5):
        names = output_names(query, page)
        page["orderBy"] = random_source.times(
            0, 3, lambda random_source: _order_key(random_source, names)
        )
    return page


def _having(random_source: SeededRandom, query: Body) -> Item:
    return {
        "field": output_name(random_source.choice(query["selects"])),
        "operator": random_source.choice(("eq", "ne", "ne", *ORDER_OPERATORS)),
        "value": random_source.choice((0, 1, 1, 2, 2.5, 5, -3, 1e30)),
    }


def _order_key(random_source: SeededRandom, names: list[str]) -> Item:
    direction = random_source.choice((None, "asc", "desc", "desc"))
    return {"field": random_source.choice(names)} | ({"direction": direction} if direction else {})


def output_name(select: Item) -> str:
    field = select["field"].replace(".", "_").replace("*", "all")
    return select.get("alias") or f"{select['aggregate']}_{field}"


def output_names(query: Body, page: Body) -> list[str]:
    names = [output_name(select) for select in query["selects"]]
    return [*names, *query.get("groupBy", []), *(["date"] if "granularity" in page else [])]


def _corrupted_body(random_source: SeededRandom) -> Body:
    """Draw a body with one or two errors; some of them leave the body valid."""
    body = deepcopy(draw_body(random_source))
    corrupt, *others = random_source.sample(SINGLE_ERRORS, 1, 2)
    for later in others:
        later(body)
    if isinstance(body.get("query"), dict) and body["query"].get("selects"):
        corrupt(body)
    return body


def draw_arbitrary_body(random_source: SeededRandom) -> Body:
    """Draw a body; one in seven has an error or two."""
    is_corrupted = random_source.has_probability(0.15)
    return (_corrupted_body if is_corrupted else draw_body)(random_source)


bodies = random_strategy(draw_body)
arbitrary_bodies = random_strategy(draw_arbitrary_body)
