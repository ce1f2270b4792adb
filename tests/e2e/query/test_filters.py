"""Each operator on each kind of column, missing values, and the properties of events."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from testing.service import Json, Row, Service, bearer
from tests.e2e.query.queries import body, event, query, rows_of, select, send, where

Find = Callable[..., list[str]]

# The namespace identifies a row. Rows are at noon unless given a timestamp.
TEXTS = {
    "plain": "/a",
    "upper": "/A",
    "percent": "/100%",
    "underscore": "/a_b",
    "like": "/aXb",
    "backslash": "/a\\b",
    "quote": "/it's",
    "unicode": "/büro🦆",
    "none": None,
}
NUMBERS = {"minus": -2.5, "zero": 0, "minus zero": -0.0, "one": 1, "big": 12345678901, "none": None}
TIMESTAMPS = {
    "early": "2025-03-10T00:00:00.000Z",
    "before": "2025-03-10T11:59:59.999Z",
    "noon": "2025-03-10T12:00:00.000Z",
    "late": "2025-03-10T23:30:00.000Z",
}
PROPERTIES: dict[str, Json] = {
    "text": {"k": "b"},
    "other text": {"k": "abc"},
    "empty text": {"k": ""},
    "numeric text": {"k": "5"},
    "number": {"k": 5},
    "fraction": {"k": 5.5},
    "zero": {"k": 0},
    "one": {"k": 1},
    "true": {"k": True},
    "false": {"k": False},
    "null": {"k": None},
    "absent": {},
    "array": {"k": [1, "x", None]},
    "object": {"k": {"b": 1, "a": {"c": "d e"}}},
}
KINDS: dict[str, tuple[str, Iterable[str]]] = {
    "texts": ("path", TEXTS),
    "numbers": ("value", NUMBERS),
    "moments": ("time", TIMESTAMPS),
    "properties": ("properties.k", PROPERTIES),
}


@pytest.fixture(scope="module")
def website_of_rows(service: Service) -> dict[str, str]:
    """Four websites, one for each kind of value in which rows differ."""
    sent = {
        "texts": [event(namespace=name, path=path) for name, path in TEXTS.items()],
        "numbers": [
            event(namespace=name, properties={} if value is None else {"value": value})
            for name, value in NUMBERS.items()
        ],
        "moments": [event(namespace=name, at=at) for name, at in TIMESTAMPS.items()],
        "properties": [
            event(namespace=name, properties=properties) for name, properties in PROPERTIES.items()
        ],
    }
    websites = {kind: service.website() for kind in sent}
    for kind, events in sent.items():
        send(service, websites[kind], *events)
    return websites


@pytest.fixture(scope="module")
def find(service: Service, website_of_rows: dict[str, str]) -> Find:
    """Returns the namespaces of the rows that a filter matches, in the order they were sent."""

    def find(kind: str, operator: str, value: Json, **root: Any) -> list[str]:
        field, names = KINDS[kind]
        sent_query = query(filters=[where(field, operator, value)], group_by=["namespace"])
        path = f"/v1/query/custom?website_id={website_of_rows[kind]}"
        response = service.post(path, body(sent_query, **root), headers=bearer(service.master))
        found = {row["namespace"] for row in rows_of(response)}
        return [name for name in names if name in found]

    return find


def but(names: dict[str, Any], *left_out: str) -> list[str]:
    return [name for name in names if name not in left_out]


ON_TEXTS: list[tuple[str, Json, list[str]]] = [
    ("eq", "/a", ["plain"]),
    ("eq", "/A", ["upper"]),
    ("eq", "", ["none"]),
    ("eq", "/it's", ["quote"]),
    ("eq", "/a\\b", ["backslash"]),
    ("eq", "/büro🦆", ["unicode"]),
    ("ne", "/a", but(TEXTS, "plain")),
    ("ne", "", but(TEXTS, "none")),
    ("gt", "/a", ["underscore", "like", "backslash", "quote", "unicode"]),
    ("gte", "/a", ["plain", "underscore", "like", "backslash", "quote", "unicode"]),
    ("lt", "/A", ["percent", "none"]),
    ("lte", "/A", ["upper", "percent", "none"]),
    ("contains", "a", ["plain", "underscore", "like", "backslash"]),
    ("contains", "%", ["percent"]),
    ("contains", "_", ["underscore"]),
    ("contains", "a_b", ["underscore"]),
    ("contains", "\\", ["backslash"]),
    ("contains", "🦆", ["unicode"]),
    ("contains", "BÜRO", []),
    ("contains", "", list(TEXTS)),
    ("not_contains", "a", ["upper", "percent", "quote", "unicode", "none"]),
    ("not_contains", "_", but(TEXTS, "underscore")),
    ("not_contains", "", []),
    ("starts_with", "/a", ["plain", "underscore", "like", "backslash"]),
    ("starts_with", "/a_", ["underscore"]),
    ("starts_with", "/1%", []),
    ("starts_with", "", list(TEXTS)),
    ("in", ["/a", "/A", "/nowhere"], ["plain", "upper"]),
    ("in", [""], ["none"]),
    ("not_in", ["/a", "/A"], but(TEXTS, "plain", "upper")),
    ("not_in", ["", "/a"], but(TEXTS, "plain", "none")),
    ("in", ["/it's", "/a\\b", "/100%"], ["percent", "backslash", "quote"]),
    ("eq", "/a' OR '1'='1", []),
    ("eq", "/a\t\n\r\b\f", []),
    ("eq", "/a\0", []),
    ("contains", "\0", []),
    ("not_contains", "\0", list(TEXTS)),
    ("in", ["\0", "/a"], ["plain"]),
]


@pytest.mark.parametrize(("operator", "value", "expected"), ON_TEXTS)
def test_operator_on_texts(find: Find, operator: str, value: Json, expected: list[str]) -> None:
    assert find("texts", operator, value) == expected


ON_NUMBERS: list[tuple[str, Json, list[str]]] = [
    ("eq", 1, ["one"]),
    ("eq", 1.0, ["one"]),
    ("eq", "1", ["one"]),
    ("eq", "-2.5", ["minus"]),
    ("eq", "1e0", ["one"]),
    ("eq", 0, ["zero", "minus zero"]),
    ("eq", -0.0, ["zero", "minus zero"]),
    ("eq", 12345678901, ["big"]),
    ("ne", 1, but(NUMBERS, "one")),
    ("ne", 0, but(NUMBERS, "zero", "minus zero")),
    ("ne", 99, list(NUMBERS)),
    ("gt", 0, ["one", "big"]),
    ("gte", 0, ["zero", "minus zero", "one", "big"]),
    ("lt", 0, ["minus"]),
    ("lte", 0, ["minus", "zero", "minus zero"]),
    ("lt", 1e300, but(NUMBERS, "none")),
    ("gt", -1e300, but(NUMBERS, "none")),
    ("in", [1, "0", -2.5], ["minus", "zero", "minus zero", "one"]),
    ("in", [-0.0], ["zero", "minus zero"]),
    ("not_in", [1, 0], ["minus", "big", "none"]),
    ("not_in", ["-0"], but(NUMBERS, "zero", "minus zero")),
]


@pytest.mark.parametrize(("operator", "value", "expected"), ON_NUMBERS)
def test_operator_on_numbers(find: Find, operator: str, value: Json, expected: list[str]) -> None:
    assert find("numbers", operator, value) == expected


NOON_MS = 1741608000000
ON_TIMESTAMPS: list[tuple[str, Json, str, list[str]]] = [
    ("eq", "2025-03-10T12:00:00Z", "UTC", ["noon"]),
    ("eq", NOON_MS, "UTC", ["noon"]),
    ("eq", "2025-03-10T12:00:00.000Z", "Asia/Tokyo", ["noon"]),
    ("eq", "2025-03-10T13:00:00+01:00", "UTC", ["noon"]),
    ("eq", "2025-03-10T13:00:00+0100", "UTC", ["noon"]),
    ("eq", "2025-03-10 12:00:00", "UTC", ["noon"]),
    ("eq", "2025-03-10T13:00:00", "Europe/Berlin", ["noon"]),
    ("eq", "2025-03-10T21:00:00", "Asia/Tokyo", ["noon"]),
    ("ne", "2025-03-10T12:00:00Z", "UTC", ["early", "before", "late"]),
    ("gt", "2025-03-10T11:59:59.998Z", "UTC", ["before", "noon", "late"]),
    ("gt", "2025-03-10T11:59:59.999Z", "UTC", ["noon", "late"]),
    ("gte", "2025-03-10T11:59:59.999Z", "UTC", ["before", "noon", "late"]),
    ("lt", NOON_MS, "UTC", ["early", "before"]),
    ("lte", NOON_MS, "UTC", ["early", "before", "noon"]),
    ("gte", "2025-03-11", "UTC", []),
    ("gte", "2025-03-11", "Europe/Berlin", ["late"]),
    ("lt", "2025-03-10", "Europe/Berlin", []),
    ("lt", "2025-03-10", "America/New_York", ["early"]),
    ("in", ["2025-03-10", NOON_MS], "UTC", ["early", "noon"]),
    ("not_in", ["2025-03-10", "2025-03-10T12:00:00Z"], "UTC", ["before", "late"]),
]


@pytest.mark.parametrize(("operator", "value", "timezone", "expected"), ON_TIMESTAMPS)
def test_operator_on_datetimes(
    find: Find, operator: str, value: Json, timezone: str, expected: list[str]
) -> None:
    assert find("moments", operator, value, timezone=timezone) == expected


NOT_TEXTS = [
    "number",
    "fraction",
    "zero",
    "one",
    "true",
    "false",
    "null",
    "absent",
    "array",
    "object",
]
ON_PROPERTIES: list[tuple[str, Json, list[str]]] = [
    ("eq", "b", ["text"]),
    ("eq", "", ["empty text"]),
    ("eq", "5", ["numeric text"]),
    ("eq", 5, ["number"]),
    ("eq", 5.0, ["number"]),
    ("eq", 5.5, ["fraction"]),
    ("eq", 1, ["one"]),
    ("eq", 0, ["zero"]),
    ("eq", True, ["true"]),
    ("eq", False, ["false"]),
    ("eq", "true", []),
    ("eq", "null", []),
    ("ne", "b", but(PROPERTIES, "text")),
    ("ne", 5, but(PROPERTIES, "number")),
    ("ne", True, but(PROPERTIES, "true")),
    ("ne", "", but(PROPERTIES, "empty text")),
    ("gt", "5", ["text", "other text"]),
    ("gte", "5", ["text", "other text", "numeric text"]),
    ("lt", "abc", ["empty text", "numeric text"]),
    ("lte", "abc", ["other text", "empty text", "numeric text"]),
    ("gt", 1, ["number", "fraction"]),
    ("gte", 1, ["number", "fraction", "one"]),
    ("lt", 5.5, ["number", "zero", "one"]),
    ("lte", 0, ["zero"]),
    ("contains", "b", ["text", "other text"]),
    ("contains", "", ["text", "other text", "empty text", "numeric text"]),
    ("contains", "5", ["numeric text"]),
    ("not_contains", "b", ["empty text", "numeric text", *NOT_TEXTS]),
    ("not_contains", "", NOT_TEXTS),
    ("starts_with", "a", ["other text"]),
    ("starts_with", "", ["text", "other text", "empty text", "numeric text"]),
    ("in", ["b", 5, True], ["text", "number", "true"]),
    ("in", ["5", 1], ["numeric text", "one"]),
    ("not_in", ["b", 5, True], but(PROPERTIES, "text", "number", "true")),
    ("not_in", ["nothing"], list(PROPERTIES)),
]


@pytest.mark.parametrize(("operator", "value", "expected"), ON_PROPERTIES)
def test_operator_on_properties_compares_values_of_its_own_type(
    find: Find, operator: str, value: Json, expected: list[str]
) -> None:
    assert find("properties", operator, value) == expected


# Properties in groups and aggregates.


@pytest.fixture
def run_query(service: Service, website_of_rows: dict[str, str]) -> Callable[..., list[Row]]:
    def run_query(sent_query: dict[str, Json], **root: Json) -> list[Row]:
        path = f"/v1/query/custom?website_id={website_of_rows['properties']}"
        return rows_of(service.post(path, body(sent_query, **root), headers=bearer(service.master)))

    return run_query


def test_groups_of_a_property_are_its_json_values(run_query: Callable[..., list[Row]]) -> None:
    answer = run_query(query(group_by=["properties.k"]))
    found = {(type(row["properties.k"]).__name__, row["properties.k"]): row["n"] for row in answer}
    assert found == {
        ("str", "b"): 1,
        ("str", "abc"): 1,
        ("str", ""): 1,
        ("str", "5"): 1,
        ("int", 5): 1,
        ("float", 5.5): 1,
        ("int", 0): 1,
        ("int", 1): 1,
        ("bool", True): 1,
        ("bool", False): 1,
        ("NoneType", None): 2,
        ("str", '[1,"x",null]'): 1,
        ("str", '{"b":1,"a":{"c":"d e"}}'): 1,
    }


def test_aggregates_of_a_property_use_its_numbers(run_query: Callable[..., list[Row]]) -> None:
    names = ("sum", "avg", "max", "min", "p50", "count", "uniq")
    assert run_query(query(*(select("properties.k", name, name) for name in names))) == [
        {"sum": 11.5, "avg": 2.875, "max": 5.5, "min": 0, "p50": 3, "count": 14, "uniq": 11}
    ]


def test_texts_only_sum_to_null(run_query: Callable[..., list[Row]]) -> None:
    filters = [where("properties.k", "eq", "5")]
    sent_query = query(
        select("properties.k", "sum"), select("properties.k", "avg"), filters=filters
    )
    assert run_query(sent_query) == [{"sum_properties_k": 0, "avg_properties_k": None}]


@pytest.mark.parametrize(
    ("properties", "name", "value"),
    [
        pytest.param({"a.b": 1, "a": {"b": 2}}, "a.b", 1, id="key with a dot comes first"),
        pytest.param({"a": {"b": 2}}, "a.b", 2, id="nested key"),
        pytest.param({"a": {"b": {"c": "x"}}}, "a.b.c", "x", id="nested twice"),
        pytest.param({"a.b": None, "a": {"b": 2}}, "a.b", None, id="key with a dot that is null"),
        pytest.param({"a": 1}, "a.b", None, id="nested in a number"),
        pytest.param({"a": [{"b": 1}]}, "a.b", None, id="nested in an array"),
        pytest.param({"a": ["x"]}, "a.0", None, id="number of an item"),
        pytest.param({"a": {"b.c": 1}}, "a.b.c", None, id="key with a dot in a nested object"),
        pytest.param({"a": "b"}, "b", None, id="no such key"),
        pytest.param({"A": 1}, "a", None, id="another case"),
        pytest.param({"ключ 🦆": "x"}, "ключ 🦆", "x", id="unicode"),
        pytest.param({"it's": "x"}, "it's", "x", id="quote"),
        pytest.param({'"': "x"}, '"', "x", id="double quote"),
        pytest.param({"a\\b": "x"}, "a\\b", "x", id="backslash"),
        pytest.param({"a b\n": "x"}, "a b\n", "x", id="blank and newline"),
        pytest.param({"k": "x\ty\\z'\"\n\u2028"}, "k", "x\ty\\z'\"\n\u2028", id="awkward value"),
        pytest.param({"[0]": "x"}, "[0]", "x", id="like an index"),
        pytest.param({"properties": {"k": 1}}, "properties.k", 1, id="called properties"),
        pytest.param({"k": -1.5e-7}, "k", -1.5e-7, id="small number"),
        pytest.param({"k": 9007199254740993}, "k", 9007199254740993, id="number beyond doubles"),
        pytest.param({"k": 1e21}, "k", 1e21, id="big number"),
        pytest.param(
            {"k": {"é": ["ü/🦆", 0.1, 1e21]}}, "k", '{"é":["ü/🦆",0.1,1e21]}', id="letters"
        ),
        pytest.param({"k": {}}, "k", "{}", id="empty object"),
        pytest.param({"k": []}, "k", "[]", id="empty array"),
        pytest.param({"path": "/p"}, "path", "/p", id="name of a column"),
    ],
)
def test_property_is_found_by_its_key(
    service: Service, website: str, properties: Json, name: str, value: Json
) -> None:
    send(service, website, event(properties=properties))
    sent_query = query(group_by=[f"properties.{name}"])
    answer = service.answer(website, sent_query)
    assert answer == [{f"properties.{name}": value, "n": 1}]
    if isinstance(value, str | int | float) and not isinstance(properties.get("k"), list | dict):
        sent_query = query(filters=[where(f"properties.{name}", "eq", value)])
        assert service.answer(website, sent_query) == [{"n": 1}]


def test_filters_are_joined_by_and(service: Service, website_of_rows: dict[str, str]) -> None:
    filters = [where("path", "starts_with", "/a"), where("path", "ne", "/a")]
    sent_query = query(filters=filters, group_by=["path"])
    answer = service.answer(website_of_rows["texts"], sent_query)
    assert [row["path"] for row in answer] == ["/aXb", "/a\\b", "/a_b"]


def test_missing_text_is_the_empty_text_and_missing_number_null(
    service: Service, website: str
) -> None:
    send(service, website, event())
    sent_query = query(group_by=["path", "country", "value", "load_time"])
    assert service.answer(website, sent_query) == [
        {"path": "", "country": "", "value": None, "load_time": None, "n": 1}
    ]
