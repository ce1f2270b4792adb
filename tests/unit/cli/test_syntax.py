"""The syntax of --select, --where, --group-by and --order-by, and its meaning."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace.base.errors import OperatorError
from headrace.cli.query.syntax import (
    read_filter,
    read_group,
    read_having,
    read_order,
    read_select,
)
from headrace.model.catalog import EVENTS, Operator
from headrace.model.wire import Filter, Having, OrderBy, Select

KNOWN = (
    "=, !=, >, >=, <, <=, eq, ne, gt, lt, gte, lte, contains, not_contains, starts_with, "
    "not_starts_with, ends_with, not_ends_with, matches, not_matches, in, not_in, is_set, "
    "is_not_set"
)
SELECT_HINT = (
    "write it as count, uniq(anonymous_id) or avg(value) as mean, and repeat --select for more "
    "than one"
)

SELECTS = {
    "count": Select("*", "count"),
    " count ": Select("*", "count"),
    "count()": Select("*", "count"),
    "count(*)": Select("*", "count"),
    "COUNT(*) AS n": Select("*", "count", "n"),
    "count as page views": Select("*", "count", "page views"),
    "uniq(anonymous_id) as visitors": Select("anonymous_id", "uniq", "visitors"),
    "sum ( value )as ": None,
    "sum ( value ) as  total ": Select("value", "sum", "total"),
    "avg(properties.unit price)": Select("properties.unit price", "avg"),
    "p95('properties.time (ms)')": Select("properties.time (ms)", "p95"),
    'max(value) as "it\'s ""most"""': Select("value", "max", 'it\'s "most"'),
    "median(value)": Select("value", "median"),
    "uniq": Select("*", "uniq"),
    "count as as": Select("*", "count", "as"),
    "count where path = /a": Select("*", "count", None, [Filter("path", "eq", "/a")]),
    "sum(value) as total WHERE path = 'a where b'  where value > 3": Select(
        "value", "sum", "total", [Filter("path", "eq", "a where b"), Filter("value", "gt", 3)]
    ),
    "count, uniq(path)": None,
    "": None,
    "(path)": None,
    "sum(value": None,
    "sum(value) total": None,
}


@pytest.mark.parametrize(("text", "select"), SELECTS.items(), ids=list(SELECTS))
def test_select_is_an_aggregate_of_a_column_and_a_name(text: str, select: Select | None) -> None:
    if select is not None:
        assert read_select(text, EVENTS) == select
        return
    with pytest.raises(OperatorError) as caught:
        read_select(text)
    assert str(caught.value) == f"cannot read --select {text!r}: {SELECT_HINT}"


@pytest.mark.parametrize(
    "operator", [each for each in Operator if not each.value.endswith(("in", "set"))]
)
def test_every_operator_has_a_syntax(operator: Operator) -> None:
    expected = Filter("path", operator.value, "/a")
    assert read_filter(f"path {operator.value} /a", EVENTS) == expected
    assert read_filter(f" path  {operator.value.upper()}  '/a' ", EVENTS) == expected
    assert read_filter(f"path {operator.value.replace('_', ' ')}'/a'", EVENTS) == expected


@pytest.mark.parametrize("word", ["is_set", "IS NOT  SET"])
def test_a_filter_of_presence_has_no_value(word: str) -> None:
    operator = "is_set" if word == "is_set" else "is_not_set"
    assert read_filter(f"referrer {word}", EVENTS) == Filter("referrer", operator)
    with pytest.raises(OperatorError, match=f"{operator} takes no value"):
        read_filter(f"referrer {word} x", EVENTS)


@pytest.mark.parametrize("word", ["in", "not_in", "NOT  IN"])
def test_every_list_operator_has_a_syntax(word: str) -> None:
    operator = "in" if word == "in" else "not_in"
    expected = Filter("country", operator, ["DE", "AT"])
    assert read_filter(f"country {word} DE,AT", EVENTS) == expected
    assert read_filter(f"country {word} ( DE , 'AT' )", EVENTS) == expected
    assert read_filter(f'country {word}("DE",AT)', EVENTS) == expected


FILTERS = {
    "country=DE": ("country", "eq", "DE"),
    "country = DE": ("country", "eq", "DE"),
    "country!=DE": ("country", "ne", "DE"),
    "value>3": ("value", "gt", 3),
    "value >= -2.5e3": ("value", "gte", -2500.0),
    "value < 3": ("value", "lt", 3),
    "value<=3": ("value", "lte", 3),
    "value = .5": ("value", "eq", ".5"),
    "value = many": ("value", "eq", "many"),
    "value = 1e999": ("value", "eq", "1e999"),
    "browser_version = 120": ("browser_version", "eq", "120"),
    "title = true": ("title", "eq", "true"),
    "is_bot = true": ("is_bot", "eq", True),
    "is_bot in true, false": ("is_bot", "in", [True, False]),
    "time > 2026-01-01": ("time", "gt", "2026-01-01"),
    "time > 1767222000000": ("time", "gt", 1767222000000),
    "properties.seats = 3": ("properties.seats", "eq", 3),
    "properties.seats = '3'": ("properties.seats", "eq", "3"),
    "properties.zip = 01234": ("properties.zip", "eq", "01234"),
    "properties.zip starts_with 12": ("properties.zip", "starts_with", "12"),
    "properties.flags contains true": ("properties.flags", "contains", "true"),
    "properties.paid ne false": ("properties.paid", "ne", False),
    "properties.paid = null": ("properties.paid", "eq", "null"),
    "'properties.unit price' > 5": ("properties.unit price", "gt", 5),
    "'properties.a=b'=c": ("properties.a=b", "eq", "c"),
    "title = Prices and plans": ("title", "eq", "Prices and plans"),
    "title = Joe's": ("title", "eq", "Joe's"),
    "title = 'Joe''s'": ("title", "eq", "Joe's"),
    'title = "say ""yes"""': ("title", "eq", 'say "yes"'),
    "title contains ' in '": ("title", "contains", " in "),
    "title contains a, b": ("title", "contains", "a, b"),
    "title = = a": ("title", "eq", "= a"),
    "country = ''": ("country", "eq", ""),
    "country in '', DE": ("country", "in", ["", "DE"]),
    "title in 'a,b', c's, \"(d)\"": ("title", "in", ["a,b", "c's", "(d)"]),
    "properties.n in 1,'1',one": ("properties.n", "in", [1, "1", "one"]),
    "id starts_with 7": ("id", "starts_with", "7"),
    "pth = 5": ("pth", "eq", "5"),
    "in in in": ("in", "in", ["in"]),
}


@pytest.mark.parametrize(("text", "parts"), FILTERS.items(), ids=list(FILTERS))
def test_filter_is_a_column_an_operator_and_a_value(text: str, parts: tuple[Any, ...]) -> None:
    read = read_filter(text, EVENTS)
    assert (read, type(read.value)) == (Filter(*parts), type(parts[2]))


def test_values_are_texts_for_a_table_that_is_not_known() -> None:
    assert read_filter("value in 1, true", None) == Filter("value", "in", ["1", "true"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("path", ["path"]),
        (" path , country", ["path", "country"]),
        ("'properties.a,b',\"properties.c\"", ["properties.a,b", "properties.c"]),
    ],
)
def test_groups_are_columns_with_commas_between_them(text: str, names: list[str]) -> None:
    assert read_group(text) == names


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("visitors", [OrderBy("visitors")]),
        ("visitors desc", [OrderBy("visitors", "desc")]),
        ("visitors DESC, path asc", [OrderBy("visitors", "desc"), OrderBy("path", "asc")]),
        ("page views desc", [OrderBy("page views", "desc")]),
        ("'visitors desc'", [OrderBy("visitors desc")]),
        ("'a,b' desc,c", [OrderBy("a,b", "desc"), OrderBy("c")]),
        ("desc", [OrderBy("desc")]),
        ("visitors down", [OrderBy("visitors down")]),
    ],
)
def test_order_is_names_with_directions(text: str, keys: list[OrderBy]) -> None:
    assert read_order(text) == keys


def _read_filter(text: str) -> Filter:
    return read_filter(text, EVENTS)


QUOTES = "the quotes in {} do not match; double a quote within quotes"
EMPTY_VALUE = "a value is missing; the empty text is written ''"
UNREADABLE = {
    "no column": (
        "where",
        _read_filter,
        "= DE",
        "it begins with the name of a column, such as country = DE",
    ),
    "nothing": (
        "where",
        _read_filter,
        "",
        "it begins with the name of a column, such as country = DE",
    ),
    "empty column": ("where", _read_filter, "'' = DE", "a name is missing"),
    "only a column": (
        "where",
        _read_filter,
        "country",
        f"an operator and a value are missing after country (one of {KNOWN})",
    ),
    "other word": (
        "where",
        _read_filter,
        "path like /a",
        "like is not an operator (did you mean contains?)",
    ),
    "other symbol": (
        "where",
        _read_filter,
        "value=>5",
        "=> is not an operator (did you mean >=?)",
    ),
    "two equals signs": (
        "where",
        _read_filter,
        "country == DE",
        "== is not an operator (did you mean =?)",
    ),
    "word for two": (
        "where",
        _read_filter,
        "value between 1 and 2",
        "between is not an operator (did you mean >= and <=?)",
    ),
    "word that only begins like one": (
        "where",
        _read_filter,
        "country inside DE",
        f"inside is not an operator (one of {KNOWN}, with spaces around words)",
    ),
    "no value": ("where", _read_filter, "country =", EMPTY_VALUE),
    "no list": ("where", _read_filter, "country in", EMPTY_VALUE),
    "empty list": ("where", _read_filter, "country in ()", EMPTY_VALUE),
    "empty item": ("where", _read_filter, "country in DE,,AT", EMPTY_VALUE),
    "comma at the end": ("where", _read_filter, "country in DE,", EMPTY_VALUE),
    "open quote": ("where", _read_filter, "title = 'tis", QUOTES.format("'tis")),
    "text behind quotes": ("where", _read_filter, "title = 'a' b", QUOTES.format("'a' b")),
    "open quote in a list": ("where", _read_filter, "title in a,'b", QUOTES.format("'b")),
    "open quote of a select": ("select", read_select, "sum('a)", QUOTES.format("'a")),
    "empty alias": ("select", read_select, "count as ''", "a name is missing"),
    "empty group": ("group-by", read_group, "path,", "a name is missing"),
    "empty order": (
        "order-by",
        read_order,
        "a,,b",
        "a name is missing; write it as visitors desc or path",
    ),
    "count of distinct values": (
        "select",
        read_select,
        "COUNT(DISTINCT anonymous_id) as visitors",
        "write distinct values as uniq(anonymous_id)",
    ),
}


@pytest.mark.parametrize(
    ("option", "reader", "text", "why"), UNREADABLE.values(), ids=list(UNREADABLE)
)
def test_unparsable_option_is_rejected_with_the_reason(
    option: str, reader: Callable[[str], object], text: str, why: str
) -> None:
    with pytest.raises(OperatorError) as caught:
        reader(text)
    assert str(caught.value) == f"cannot read --{option} {text!r}: {why}"


def test_having_is_an_output_an_operator_and_a_number() -> None:
    assert read_having("visitors > 10") == Having("visitors", "gt", 10)
    assert read_having("'n n' ne 2.5") == Having("n n", "ne", 2.5)
    with pytest.raises(OperatorError, match="write it as visitors > 10"):
        read_having("visitors")
