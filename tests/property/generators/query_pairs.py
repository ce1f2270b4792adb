"""Pairs of queries of one shape that differ in their values only.

This module defines what counts as a value, and which values form one class, from the contract and
the calendar. It imports nothing from the compiler or the validation. So a compiler that writes a
value into its SQL text, or lets a value change the text, fails the property.

| Value | Class |
|---|---|
| filter value | type of the column, or JSON type for properties; array of texts, or of any values |
| property key | number of dots; whether it begins like JSON's separators |
| alias, website, limit, offset | any |
| range | see `ranges_of` |
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import date, timedelta
from itertools import chain
from typing import Any, NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

from tests.oracle.check import PATTERN_OPERATORS, PRESENCE_OPERATORS
from tests.oracle.columns import ALIASES
from tests.property.generators.query_cases import bodies, column, output_names, single_filters

Body = dict[str, Any]

# NUL is rejected in events, but a query may contain it; lone surrogates are not valid JSON.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.just(-0.0)
)
timestamps = st.one_of(
    st.datetimes().map(lambda timestamp: timestamp.isoformat(timespec="milliseconds")),
    st.dates().map(str),
    st.integers(-(10**13), 10**13),
)

_SEPARATORS = ":,]"
"""A key that begins with a separator of JSON is extracted differently: it forms its own class."""

_key_parts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=f".{_SEPARATORS}"),
    min_size=1,
    max_size=8,
)

MAX_CHANGES_IN_SQL = 4
"""Up to this many offset changes have one term each in SQL; a range with more has a table."""

_CHANGING_ZONES = ("Europe/Berlin", "America/New_York", "Europe/London", "Australia/Lord_Howe")
"""Zones that change their clocks once in March or April and once in October or November."""

_FIXED_ZONES = ("UTC", "Asia/Tokyo", "Asia/Kolkata", "Asia/Kathmandu", "Etc/GMT+12", "Etc/GMT-14")
"""Zones that have not changed their clocks since 1990."""

_SKIPPED_DAYS = (("2011-12-30", "Pacific/Apia"), ("1993-08-21", "Pacific/Kwajalein"))
_YEARS = range(2008, 2032)
_MAX_SEASONS = 18  # a range is shorter than ten years

# In St. John's, clocks went back from 00:01 to 23:01 of the day before.
_MIDNIGHT_CHANGES = tuple(
    date(year, month, day)
    for year, month, day in (
        *((2001, 10, 28), (2002, 10, 27), (2003, 10, 26), (2004, 10, 31), (2005, 10, 30)),
        *((2006, 10, 29), (2007, 11, 4), (2008, 11, 2), (2009, 11, 1), (2010, 11, 7)),
    )
)
_MIDNIGHT_ZONE = "America/St_Johns"


class Range(NamedTuple):
    """The dates and the timezone of a query."""

    first: date
    last: date
    zone: str


class Shape(NamedTuple):
    """The properties of a range that the SQL text may depend on.

    `changes` is the number of offset changes. `is_contiguous` is false if clocks go back across
    midnight at an end of the range.
    """

    is_contiguous: bool
    changes: int


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Draw the shape of a range."""
    changes = draw(st.integers(0, MAX_CHANGES_IN_SQL + 1))
    return Shape(is_contiguous=changes != 1 or draw(st.booleans()), changes=changes)


@st.composite
def ranges_of(draw: st.DrawFn, shape: Shape) -> Range:
    """Draw a range of a shape.

    Without a change: any dates in a zone that never changes its clocks, and a day that a zone
    skipped. With changes: from a day between two changes to a day that many changes later, and for
    one change also the day of the change. Not contiguous: a range that starts on a day that began
    twice, or that ends on the day before.
    """
    if not shape.is_contiguous:
        return draw(_midnight_ranges())
    if shape.changes == 0:
        return draw(st.one_of(_fixed_ranges(), st.sampled_from(_SKIPPED_DAYS).map(_one_day)))
    if shape.changes > MAX_CHANGES_IN_SQL:
        most = st.one_of(st.just(shape.changes), st.integers(shape.changes, _MAX_SEASONS))
        return draw(_seasons(draw(most)))
    return draw(_seasons(shape.changes))


def _one_day(day_and_zone: tuple[str, str]) -> Range:
    day, zone = day_and_zone
    return Range(date.fromisoformat(day), date.fromisoformat(day), zone)


@st.composite
def _fixed_ranges(draw: st.DrawFn) -> Range:
    first = draw(st.dates(date(1990, 1, 1), date(2200, 1, 1)))
    last = first + timedelta(days=draw(st.one_of(st.just(0), st.integers(0, 400))))
    return Range(first, last, draw(st.sampled_from(_FIXED_ZONES)))


@st.composite
def _seasons(draw: st.DrawFn, changes: int) -> Range:
    """Draw a range from a season without changes to the one `changes` seasons later."""
    season = draw(st.integers(2 * _YEARS[0], 2 * _YEARS[-1] - _MAX_SEASONS))
    first, last = draw(_days_of(season)), draw(_days_of(season + changes))
    return Range(first, last, draw(st.sampled_from(_CHANGING_ZONES)))


def _days_of(season: int) -> st.SearchStrategy[date]:
    """Return the days of a season, counted from year 0: winter is even, summer is odd."""
    year, is_summer = divmod(season, 2)
    if is_summer:
        return st.dates(date(year, 5, 1), date(year, 8, 31))
    return st.dates(date(year, 1, 1), date(year, 2, 20))


@st.composite
def _midnight_ranges(draw: st.DrawFn) -> Range:
    day = draw(st.sampled_from(_MIDNIGHT_CHANGES))
    days = timedelta(days=draw(st.one_of(st.just(0), st.integers(0, 60))))
    if draw(st.booleans()):
        return Range(day, day + days, _MIDNIGHT_ZONE)
    before = day - timedelta(days=1)
    return Range(before - days, before, _MIDNIGHT_ZONE)


class KeyClass(NamedTuple):
    """The properties of a property key that the SQL text may depend on."""

    dots: int
    begins_with_separator: bool


@st.composite
def keys_of(draw: st.DrawFn, key_class: KeyClass) -> str:
    """Draw a property key of a class."""
    parts = [draw(_key_parts) for _ in range(key_class.dots + 1)]
    if key_class.begins_with_separator:
        parts[0] = draw(st.sampled_from(_SEPARATORS)) + parts[0]
    return ".".join(parts)


@st.composite
def query_pairs(draw: st.DrawFn) -> tuple[Body, Body]:
    """Draw two bodies of one shape."""
    body = draw(bodies)
    shape = draw(shapes())
    if body.get("granularity") == "hourly" and shape.changes > 2:
        body["fill"] = False  # more hours than a gap-filled result may have
    twin = deepcopy(body)
    for changed in (body, twin):
        _change_keys(draw, changed)
        for number, select in enumerate(changed["query"]["selects"]):
            _change_alias(draw, changed, select, number)
        own_shape = shape
        if shape.is_contiguous and "granularity" not in body:
            # Without buckets a contiguous range has two ends and no offsets.
            own_shape = draw(shapes().filter(lambda other: other.is_contiguous))
        if body.get("compare") is None:  # two ranges have a shape together: they stay the same
            _set_range(changed, draw(ranges_of(own_shape)))
        changed |= {"limit": draw(st.integers(1, 20_000)), "offset": draw(st.integers(0, 10**6))}
        names = output_names(changed["query"], changed)
        assume(len(set(names)) == len(names))
    table: str = twin["query"]["table"]
    table = ALIASES.get(table, table)
    for sent in _all_filters(twin["query"]):
        if sent["operator"] in PATTERN_OPERATORS:
            sent["value"] = re.escape(draw(texts))
        elif sent["operator"] not in PRESENCE_OPERATORS:
            sent["value"] = _another_value(draw, column(table, sent["field"]).kind, sent["value"])
    return body, twin


def _all_filters(query: Body) -> list[Body]:
    own = (select.get("filters", []) for select in query["selects"])
    return [*single_filters(query.get("filters", [])), *chain.from_iterable(own)]


def _set_range(body: Body, days: Range) -> None:
    body |= {"startDate": str(days.first), "endDate": str(days.last), "timezone": days.zone}


def _another_value(draw: st.DrawFn, kind: str, value: Any) -> Any:
    """Draw another value of the same class."""
    if not isinstance(value, list):
        return draw(_values_like(kind, value))
    values: list[Any] = value  # pyright: ignore[reportUnknownVariableType] - JSON
    example = next((item for item in values if not isinstance(item, str)), values[0])
    return draw(st.lists(_values_like(kind, example), min_size=1, max_size=5))


def _values_like(kind: str, value: Any) -> st.SearchStrategy[Any]:
    if kind == "datetime":
        return timestamps
    if isinstance(value, bool):
        return st.booleans()
    return texts if isinstance(value, str) and kind != "number" else numbers


def _change_keys(draw: st.DrawFn, body: Body) -> None:
    """Replace every property key with one of its class, consistently throughout the body."""
    query = body["query"]
    keys: dict[str, str] = {}

    def change(field: str) -> str:
        key = field.removeprefix("properties.")
        if key == field:
            return field
        if field not in keys:
            key_class = KeyClass(key.count("."), key.startswith(tuple(_SEPARATORS)))
            keys[field] = f"properties.{draw(keys_of(key_class))}"
        return keys[field]

    for item in [*query["selects"], *_all_filters(query)]:
        item["field"] = change(item["field"])
    groups = query.get("groupBy", [])
    query["groupBy"] = [change(field) for field in groups]
    _change_order(body, lambda field: change(field) if field in groups else field)
    assume(len(set(keys.values())) == len(keys))


def _change_alias(draw: st.DrawFn, body: Body, select: Mapping[str, Any], number: int) -> None:
    if "alias" not in select:
        return
    old, new = select["alias"], f"{number} {draw(texts)}"
    body["query"]["selects"][number] = {**select, "alias": new}
    _change_order(body, lambda field: new if field == old else field)


def _change_order(body: Body, change: Callable[[str], str]) -> None:
    for key in [*body.get("orderBy", []), *body.get("having", [])]:
        key["field"] = change(key["field"])
