"""Results of queries over rows in a real store: every rule that the compiled SQL implements."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.model.catalog import ERRORS, EVENTS, PERFORMANCE, Kind
from headrace.model.storage import STORAGE_TABLES
from testing.queries import COUNT, WEBSITE, query_body, query_rows, run_query, select, where
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables

Row = Mapping[str, Any]
Answer = list[dict[str, Any]]


@pytest.fixture
def tables(tables_of_module: Tables) -> Tables:
    """Emptied tables of the module: creating them takes longer than most of the tests."""
    tables_of_module.empty()
    return tables_of_module


def at(text: str) -> int:
    """Return the epoch milliseconds of a UTC time."""
    timestamp = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (timestamp - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def event(name: str = "click", when: str = "2026-01-05T12:00", **columns: Any) -> Row:
    """Return a row of `events`; `properties` may be an object."""
    properties = columns.pop("properties", None)
    text = json.dumps(properties, ensure_ascii=False, separators=(",", ":")).encode()
    return {
        "website_id": WEBSITE,
        "event_name": name,
        "time": at(when),
        "properties": b"" if properties is None else text,
        **columns,
    }


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Give rows ids in order of arrival."""
    return [{"id": index.to_bytes(16, "big"), **row} for index, row in enumerate(rows)]


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Tables whose rows belong to another website."""
    with made_tables(request, request.param) as store:
        store.insert(EVENTS, [{**event(session_id="s", anonymous_id="u"), "website_id": "web_2"}])
        store.insert(ERRORS, [{"website_id": "web_2", "time": at("2026-01-05")}])
        store.insert(PERFORMANCE, [{"website_id": "web_2", "time": at("2026-01-05")}])
        yield store


@pytest.mark.parametrize("table", ["events", "sessions", "profiles", "errors", "performance"])
def test_rows_of_another_website_are_never_seen(elsewhere: Tables, table: str) -> None:
    assert query_rows(elsewhere, query_body(table=table)) == [{"n": 0}]


# Aggregates.


NUMBERS = [1.0, 2.0, 4.5, -3.0, -0.0, None]
PROPERTIES = [1, 2, 4.5, -3, None, "7", True, [8]]


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def measured(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Tables with an event of each of NUMBERS and PROPERTIES."""
    with made_tables(request, request.param) as store:
        rows = [event(value=number, path="/" if number else "") for number in NUMBERS]
        rows += [event("property", properties={"k": value}) for value in PROPERTIES]
        store.insert(EVENTS, rows)
        yield store


AGGREGATES = [
    ("*", "count", 14),
    ("value", "count", 14),
    ("value", "uniq", 5),
    ("value", "sum", 4.5),
    ("value", "avg", 0.9),
    ("value", "max", 4.5),
    ("value", "min", -3),
    ("value", "p50", 1),
    ("value", "p75", 2),
    ("value", "p90", 3.5),
    ("value", "p95", 4),
    ("value", "p99", 4.4),
    ("load_time", "uniq", 0),
    ("load_time", "sum", 0),
    ("load_time", "avg", None),
    ("load_time", "max", None),
    ("load_time", "min", None),
    ("load_time", "p50", None),
    ("path", "uniq", 1),
    ("city", "uniq", 0),
    ("anonymous_id", "uniq", 0),
    ("id", "uniq", 14),
    ("website_id", "uniq", 1),
    ("is_bot", "uniq", 1),
    ("time", "uniq", 1),
    ("properties.k", "count", 14),
    ("properties.k", "uniq", 7),
    ("properties.k", "sum", 4.5),
    ("properties.k", "avg", 1.125),
    ("properties.k", "max", 4.5),
    ("properties.k", "min", -3),
    ("properties.k", "p50", 1.5),
    ("properties.nothing", "uniq", 0),
    ("properties.nothing", "sum", 0),
    ("properties.nothing", "p99", None),
]


@pytest.mark.parametrize(("field", "aggregate", "expected"), AGGREGATES)
def test_aggregate_leaves_missing_values_out(
    measured: Tables, field: str, aggregate: str, expected: float | None
) -> None:
    ((found,),) = run_query(measured, query_body(select(field, aggregate, "x"))).rows
    assert found == (expected if expected is None else pytest.approx(expected, rel=1e-12))


def test_sum_of_many_fractions_is_not_off_in_the_last_digits(tables: Tables) -> None:
    tables.insert(EVENTS, [event(value=0.1)] * 1_000)
    ((found,),) = run_query(tables, query_body(select("value", "sum", "x"))).rows
    assert found == pytest.approx(100, rel=1e-15)  # the error of a naive sum is ten times larger


@pytest.mark.slow
def test_distinct_values_and_percentiles_of_many_rows_are_exact(tables: Tables) -> None:
    """Approximate aggregates are exact only for fewer rows than these."""
    tables.insert(EVENTS, [event(value=float(number)) for number in range(100_001)])
    shares = ("uniq", "p50", "p75", "p90", "p95", "p99")
    sent_query = query_body(*(select("value", aggregate) for aggregate in shares))
    assert run_query(tables, sent_query).rows == [[100_001, 50_000, 75_000, 90_000, 95_000, 99_000]]


@pytest.mark.parametrize("aggregate", ["sum", "avg", "p50"])
def test_what_overflows_a_double_is_null(tables: Tables, aggregate: str) -> None:
    signs = (1, -1) if aggregate == "p50" else (1, 1)
    tables.insert(EVENTS, [event(value=sign * 1.7e308) for sign in signs])
    assert query_rows(tables, query_body(select("value", aggregate, "x"))) == [{"x": None}]


def test_aggregate_over_no_rows_is_one_row(tables: Tables) -> None:
    body = query_body(COUNT, select("value", "sum", "s"), select("value", "avg", "a"))
    assert query_rows(tables, body) == [{"n": 0, "s": 0, "a": None}]
    assert query_rows(tables, query_body(group_by=["path"])) == []
    assert query_rows(tables, query_body(granularity="daily")) == []


# Groups.


def test_values_are_returned_with_their_column_types(tables: Tables) -> None:
    row_id = bytes.fromhex("0123456789abcdef" * 2)
    tables.insert(EVENTS, [event(when="2026-01-05T12:00:00.007", id=row_id, value=5.0)])
    body = query_body(group_by=["id", "time", "is_bot", "value", "city"])
    assert query_rows(tables, body) == [
        {
            "id": "0123456789abcdef0123456789abcdef",
            "time": "2026-01-05T12:00:00.007Z",
            "is_bot": False,
            "value": 5,
            "city": "",
            "n": 1,
        }
    ]


def test_minus_zero_and_zero_are_one_group(tables: Tables) -> None:
    tables.insert(EVENTS, [event(value=0.0), event(value=-0.0), event(properties={"k": -0.0})])
    assert query_rows(tables, query_body(group_by=["value"])) == [
        {"value": 0, "n": 2},
        {"value": None, "n": 1},
    ]
    for operator, value in (("eq", -0.0), ("eq", 0), ("in", [0]), ("in", [-0.0]), ("gte", 0)):
        filters = [where("value", operator, value)]
        assert query_rows(tables, query_body(filters=filters)) == [{"n": 2}]
        filters = [where("properties.k", operator, value)]
        assert query_rows(tables, query_body(filters=filters)) == [{"n": 1}]


@pytest.mark.parametrize("table", ["events", "errors", "performance"])
def test_every_stored_column_can_be_grouped_by(elsewhere: Tables, table: str) -> None:
    for column in STORAGE_TABLES[table].shown_columns:
        if column.kind is not Kind.JSON:
            assert query_rows(elsewhere, query_body(table=table, group_by=[column.name])) == []


# Fingerprints.


STACK = "TypeError: x\n    at pay (https://shop.example/app.js:1:22)\n    at main (x.js:2:1)"
FIRST = {"error_type": "TypeError", "message": "order 17 of 'Ann' not found", "stack": STACK}
SAME_ERROR = [
    pytest.param({"message": "order 18 of 'Ann' not found"}, id="another number"),
    pytest.param({"message": "order 8f3a-2c of 'Ann' not found"}, id="another id"),
    pytest.param({"message": "order 1,234.50 of 'Ann' not found"}, id="another amount"),
    pytest.param({"message": "order https://a.example/o?id=1 of 'Ann' not found"}, id="a URL"),
    pytest.param({"message": "order 17 of 'Bob's' not found"}, id="another quoted text"),
    pytest.param({"message": 'order 17 of "Bob" not found'}, id="other quotation marks"),
    pytest.param({"message": "order 17 of “Bob” not found"}, id="typographic quotation marks"),
    pytest.param({"stack": STACK.replace("main", "start")}, id="another second frame"),
    pytest.param({"stack": STACK.replace("TypeError: x", "TypeError: y")}, id="another first line"),
    pytest.param({"browser_name": "Firefox", "path": "/pay", "lineno": 2.0}, id="other columns"),
]
OTHER_ERROR = [
    pytest.param({"error_type": "RangeError"}, id="another type"),
    pytest.param({"message": "order 17 of 'Ann' was found"}, id="other words"),
    pytest.param({"stack": STACK.replace("pay", "order")}, id="another function"),
    pytest.param({"stack": STACK.replace("app.js", "main.js")}, id="another file"),
    pytest.param({"stack": STACK.replace("1:22", "1:23")}, id="another place"),
    pytest.param({"stack": ""}, id="no stack"),
]


def fingerprints_of(tables: Tables, *others: Row) -> Answer:
    """Store an error and others that differ from it in some columns; return the groups."""
    errors = [
        {**FIRST, **other, "website_id": WEBSITE, "time": at("2026-01-05") + number * 1000}
        for number, other in enumerate(({}, *others))
    ]
    tables.insert(ERRORS, errors)
    seen = [COUNT, select("time", "earliest", "first"), select("time", "latest", "last")]
    return query_rows(tables, query_body(*seen, table="errors", group_by=["fingerprint"]))


@pytest.mark.parametrize("other", SAME_ERROR)
def test_errors_that_differ_in_data_alone_have_one_fingerprint(tables: Tables, other: Row) -> None:
    assert fingerprints_of(tables, other) == [
        {
            "fingerprint": "379e3d7ffd2f38f3",
            "n": 2,
            "first": "2026-01-05T00:00:00.000Z",
            "last": "2026-01-05T00:00:01.000Z",
        }
    ]


@pytest.mark.parametrize("other", OTHER_ERROR)
def test_other_errors_have_another_fingerprint(tables: Tables, other: Row) -> None:
    groups = fingerprints_of(tables, other)
    assert [group["n"] for group in groups] == [1, 1]
    assert all(re.fullmatch("[0-9a-f]{16}", group["fingerprint"]) for group in groups)


def test_fingerprint_is_filtered_counted_and_searched_like_a_text(tables: Tables) -> None:
    first, second = fingerprints_of(tables, {"message": "slow"}, {"message": "slow"})[::-1]
    distinct = select("fingerprint", "uniq", "n")
    own = {**COUNT, "alias": "own", "filters": [where("fingerprint", "eq", first["fingerprint"])]}
    assert query_rows(tables, query_body(distinct, own, table="errors")) == [{"n": 2, "own": 1}]
    for operator, value, count in (
        ("eq", second["fingerprint"], 2),
        ("ne", second["fingerprint"], 1),
        ("in", [first["fingerprint"], second["fingerprint"]], 3),
        ("starts_with", first["fingerprint"][:8], 1),
        ("matches", "^[0-9a-f]{16}$", 3),
    ):
        filters = [where("fingerprint", operator, value)]
        body = query_body(table="errors", filters=filters)
        assert query_rows(tables, body) == [{"n": count}]


# Limits.


def test_result_has_limit_offset_and_truncated_flag(tables: Tables) -> None:
    tables.insert(EVENTS, [event(path=f"/{n}") for n in range(5)])
    pages = [
        run_query(tables, query_body(group_by=["path"], limit=2, offset=offset))
        for offset in (0, 2, 4, 6)
    ]
    assert [(page.rows, page.truncated) for page in pages] == [
        ([["/0", 1], ["/1", 1]], True),
        ([["/2", 1], ["/3", 1]], True),
        ([["/4", 1]], False),
        ([], False),
    ]


# Properties.


EMPTY_ARRAY: list[Any] = []
EMPTY_OBJECT: dict[str, Any] = {}
SAME = [
    pytest.param([5, 5.0], 5, id="whole numbers"),
    pytest.param([0, -0.0], 0, id="zeros"),
    pytest.param([0.1], 0.1, id="fraction"),
    pytest.param([-2.5e-7], -2.5e-7, id="small number"),
    pytest.param([1e21], 1e21, id="large number"),
    pytest.param([2**53 + 1], 2**53 + 1, id="past doubles"),
    pytest.param([2**63, 2**63], 2**63, id="past signed 64 bits"),
    pytest.param([10**25, 10**25], 10**25, id="past 64 bits"),
    pytest.param([-(10**25)], -(10**25), id="negative past 64 bits"),
    pytest.param([10**400, 10**400], 10**400, id="past the range of doubles"),
    pytest.param([-(10**400)], -(10**400), id="negative past the range of doubles"),
    pytest.param([str(10**25)], str(10**25), id="text of so many digits"),
    pytest.param(["5"], "5", id="text of a digit"),
    pytest.param(["true"], "true", id="text of a boolean"),
    pytest.param(["null"], "null", id="text of null"),
    pytest.param([""], "", id="empty text"),
    pytest.param(['"'], '"', id="quotation mark"),
    pytest.param(
        ["\\u00e9 é 🦆 \u2028 / \\ \t\n\x01"], "\\u00e9 é 🦆 \u2028 / \\ \t\n\x01", id="odd"
    ),
    pytest.param([True], True, id="true"),
    pytest.param([False], False, id="false"),
    pytest.param([EMPTY_ARRAY], "[]", id="empty array"),
    pytest.param([EMPTY_OBJECT], "{}", id="empty object"),
    pytest.param([{"b": [1, "x", None], "a": 1}], '{"b":[1,"x",null],"a":1}', id="object"),
    pytest.param([None], None, id="null"),
]


@pytest.mark.parametrize(("values", "shown"), SAME)
def test_property_is_grouped_by_its_json_value(
    tables: Tables, values: list[Any], shown: Any
) -> None:
    tables.insert(EVENTS, [event(properties={"other": 1, "k": value}) for value in values])
    (row,) = query_rows(tables, query_body(group_by=["properties.k"]))
    assert row == {"properties.k": shown, "n": len(values)}
    assert type(row["properties.k"]) is type(shown)
    if not isinstance(values[0], list | dict) and shown is not None:
        body = query_body(filters=[where("properties.k", "eq", shown)])
        assert query_rows(tables, body) == [{"n": len(values)}]


LONG = 12345678901234567890123
"""An integer past 64 bits."""

CLOSE_NUMBERS = (2**53, 2**53 + 1, 2**53 + 2)
"""The first two are one double."""


@pytest.mark.parametrize(
    ("operator", "value", "found"),
    [
        ("eq", 2**53 + 1, [2**53 + 1]),
        ("ne", 2**53, [2**53 + 1, 2**53 + 2]),
        ("in", [2**53 + 1], [2**53 + 1]),
        ("gt", 2**53, [2**53 + 2]),
        ("gte", 2**53 + 1, [2**53, 2**53 + 1, 2**53 + 2]),
        ("lt", 2**53 + 1, []),
        ("lte", 2**53, [2**53, 2**53 + 1]),
    ],
)
def test_long_numbers_of_properties_are_equal_by_digits_and_ordered_as_doubles(
    tables: Tables, operator: str, value: Any, found: list[int]
) -> None:
    tables.insert(EVENTS, [event(properties={"k": number}) for number in CLOSE_NUMBERS])
    body = query_body(filters=[where("properties.k", operator, value)], group_by=["properties.k"])
    assert sorted(row["properties.k"] for row in query_rows(tables, body)) == found


@pytest.mark.parametrize(
    ("operator", "value", "found"),
    [
        pytest.param("gt", 5, [10**400, 10**401], id="gt"),
        pytest.param("gte", 10**401, [10**400, 10**401], id="gte"),
        pytest.param("lt", 10**400, [-(10**400), 5], id="lt"),
        pytest.param("lte", -(10**400), [-(10**400)], id="lte"),
        pytest.param("not_in", [10**401, 5], [-(10**400), 10**400], id="not_in"),
    ],
)
def test_numbers_of_properties_past_doubles_are_infinite_in_order(
    tables: Tables, operator: str, value: Any, found: list[int]
) -> None:
    numbers = (-(10**400), 5, 10**400, 10**401)
    tables.insert(EVENTS, [event(properties={"k": number}) for number in numbers])
    body = query_body(filters=[where("properties.k", operator, value)], group_by=["properties.k"])
    assert sorted(row["properties.k"] for row in query_rows(tables, body)) == found


@pytest.mark.parametrize(("aggregate", "sign"), [("max", 1), ("min", -1)])
def test_extreme_past_doubles_is_null_also_in_order_and_having(
    tables: Tables, aggregate: str, sign: int
) -> None:
    numbers = {"/finite": 5, "/infinite": sign * 10**400}
    rows = [event(path=path, properties={"k": number}) for path, number in numbers.items()]
    tables.insert(EVENTS, rows)
    body = query_body(select("properties.k", aggregate, "x"), group_by=["path"])
    finite, infinite = {"path": "/finite", "x": 5}, {"path": "/infinite", "x": None}
    assert query_rows(tables, body) == [finite, infinite]
    assert query_rows(tables, {**body, "having": [where("x", "ne", 5)]}) == [infinite]
    assert query_rows(tables, {**body, "having": [where("x", "gt", 6)]}) == []
    assert query_rows(tables, {**body, "having": [where("x", "lt", 4)]}) == []


def test_values_of_different_types_are_groups_of_their_own(tables: Tables) -> None:
    values = [5, "5", 10**25, str(10**25), True, "true", None, [5], "[5]", {"a": 1}]
    tables.insert(EVENTS, [event(properties={"k": value}) for value in values])
    tables.insert(EVENTS, [event(), event(properties={})])
    body = query_body(group_by=["properties.k"], orderBy=[{"field": "properties.k"}])
    assert [(row["properties.k"], row["n"]) for row in query_rows(tables, body)] == [
        (5, 1),
        (10**25, 1),
        (True, 1),
        (str(10**25), 1),
        ("5", 1),
        ("[5]", 1),
        ("true", 1),
        ("[5]", 1),
        ('{"a":1}', 1),
        (None, 3),
    ]


def test_big_integers_are_strings_or_numbers_even_in_one_column(tables: Tables) -> None:
    digits = -12345678901234567890123
    both = {"number": digits, "text": str(digits), "all": [digits, str(digits), 1, {"5": digits}]}
    tables.insert(EVENTS, [event(properties=both)])
    body = query_body(group_by=["properties.number", "properties.text", "properties.all"])
    assert query_rows(tables, body) == [
        {
            "properties.number": digits,
            "properties.text": str(digits),
            "properties.all": f'[{digits},"{digits}",1,{{"5":{digits}}}]',
            "n": 1,
        }
    ]


def test_texts_are_kept_whatever_they_begin_with_beside_big_integers(tables: Tables) -> None:
    texts = [f"{prefix}{LONG}" for prefix in ("", "(text)", "(text)(text)", '"', '"(text)', "-")]
    values = [LONG, *texts, -LONG]
    tables.insert(EVENTS, [event(properties={"list": values})])
    rows = query_rows(tables, query_body(group_by=["properties.list"]))
    assert [json.loads(row["properties.list"]) for row in rows] == [values]


@pytest.mark.parametrize("value", [LONG, str(LONG), [LONG, str(LONG)], {str(LONG): LONG}])
@pytest.mark.parametrize("key", [f"a.{LONG}", f"a.{LONG}.b", str(LONG)])
def test_property_is_found_by_a_key_of_the_digits_of_its_value(
    tables: Tables, key: str, value: Any
) -> None:
    properties = value
    for name in reversed(key.split(".")):
        properties = {name: properties}
    tables.insert(EVENTS, [event(properties={**properties, "other": [str(LONG), {}, LONG]})])
    column = f"properties.{key}"
    found = query_rows(tables, query_body(group_by=[column]))[0][column]
    assert (json.loads(found) if isinstance(value, list | dict) else found) == value


@pytest.mark.parametrize("field", ["event_name", "properties.k"])
@pytest.mark.parametrize("operator", ["eq", "contains", "starts_with", "in"])
def test_text_with_nul_matches_nothing(tables: Tables, field: str, operator: str) -> None:
    tables.insert(EVENTS, [event(event_name=name, properties={"k": name}) for name in ("a", "")])
    value = ["a\0"] if operator == "in" else "a\0"
    assert query_rows(tables, query_body(filters=[where(field, operator, value)])) == [{"n": 0}]


KEYS = [
    pytest.param({"a.b": 1, "a": {"b": 2}}, "a.b", 1, id="the very key comes first"),
    pytest.param({"a.b": None, "a": {"b": 2}}, "a.b", None, id="also when it is null"),
    pytest.param({"a": {"b": {"c": "x"}}}, "a.b.c", "x", id="nested"),
    pytest.param({"a": {"b.c": "x"}}, "a.b.c", None, id="nested with a dot"),
    pytest.param({"a": [{"b": 1}]}, "a.b", None, id="in an array"),
    pytest.param({"a": ["x"]}, "a.0", None, id="no index"),
    pytest.param({"a": {"": {"b": 1}}}, "a..b", 1, id="nested empty key"),
    pytest.param({"": 1}, " ", None, id="blank"),
    pytest.param({"'`\"\\\n🦆": 1}, "'`\"\\\n🦆", 1, id="odd"),
    pytest.param({"A": 1}, "a", None, id="another case"),
    pytest.param({"a": {"a": {"a": 1}}}, ".".join("a" * 128), None, id="128 names"),
]


@pytest.mark.parametrize(("properties", "key", "value"), KEYS)
def test_property_is_found_by_key_then_by_path(
    tables: Tables, properties: Any, key: str, value: Any
) -> None:
    tables.insert(EVENTS, [event(properties=properties)])
    assert query_rows(tables, query_body(group_by=[f"properties.{key}"])) == [
        {f"properties.{key}": value, "n": 1}
    ]


# Filters.


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def filtered(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Rows identified by title: texts in `path`, numbers in `value`, JSON in `properties`."""
    with made_tables(request, request.param) as store:
        texts = ["", "/a", "/A", "/100%", "/a_b", "/aXb", "/a\\b", "/it's", "/é🦆"]
        store.insert(EVENTS, [event("text", path=text, title=text) for text in texts])
        numbers = [None, -2.5, 0.0, 1.0, 1e10]
        store.insert(EVENTS, [event("number", value=n, title=str(n)) for n in numbers])
        values = ["b", "abc", "", "5", 5, 5.5, 0, True, False, None, [1], {"b": 1}]
        store.insert(
            EVENTS,
            [event("property", title=json.dumps(v), properties={"k": v}) for v in values]
            + [event("property", title="absent")],
        )
        yield store


KINDS = {"path": "text", "value": "number", "properties.k": "property"}
PATHS = ["", "/100%", "/A", "/a", "/aXb", "/a\\b", "/a_b", "/it's", "/é🦆"]
FILTERS: list[tuple[str, str, Any, list[str]]] = [
    ("path", "eq", "", [""]),
    ("path", "eq", "/a\\b", ["/a\\b"]),
    ("path", "contains", "%", ["/100%"]),
    ("path", "contains", "_", ["/a_b"]),
    ("path", "starts_with", "/a_", ["/a_b"]),
    ("path", "not_contains", "a", ["", "/100%", "/A", "/it's", "/é🦆"]),
    ("path", "not_contains", "", []),
    ("path", "ends_with", "A", ["/A"]),
    ("path", "not_ends_with", "", []),
    ("path", "not_starts_with", "/a", ["", "/100%", "/A", "/it's", "/é🦆"]),
    ("path", "matches", "", PATHS),
    ("path", "matches", "^/a.b$", ["/aXb", "/a\\b", "/a_b"]),
    ("path", "matches", "^/.🦆é?$", ["/é🦆"]),
    ("path", "not_matches", "(?i)/A", ["", "/100%", "/it's", "/é🦆"]),
    ("path", "matches", "(?i)IT'S", ["/it's"]),
    ("path", "not_matches", "\0*", PATHS),
    ("path", "is_not_set", None, [""]),
    ("path", "gt", "/a_b", ["/it's", "/é🦆"]),
    ("path", "lte", "/100%", ["", "/100%"]),
    ("path", "in", ["/A", "/it's", "x"], ["/A", "/it's"]),
    ("path", "in", ["/\t'\\"], []),
    ("value", "ne", 1, ["-2.5", "0.0", "10000000000.0", "None"]),
    ("value", "not_in", ["1", 0], ["-2.5", "10000000000.0", "None"]),
    ("value", "lt", 1, ["-2.5", "0.0"]),
    ("value", "in", ["1e10"], ["10000000000.0"]),
    ("properties.k", "eq", "5", ['"5"']),
    ("properties.k", "eq", 5, ["5"]),
    ("properties.k", "gt", "5", ['"abc"', '"b"']),
    ("properties.k", "gte", 5, ["5", "5.5"]),
    ("properties.k", "in", ["b", 5.5, False], ['"b"', "5.5", "false"]),
    ("properties.k", "contains", "b", ['"abc"', '"b"']),
    ("properties.k", "matches", "(?i)AB", ['"abc"']),
    ("properties.k", "starts_with", "", ['""', '"5"', '"abc"', '"b"']),
    ("properties.k", "eq", "[1]", []),
    ("properties.k", "ends_with", "c", ['"abc"']),
    ("properties.k", "matches", "^.?$", ['""', '"5"', '"b"']),
    ("properties.k", "is_not_set", None, ['""', "absent", "null"]),
    ("value", "is_not_set", None, ["None"]),
]
PROPERTY_TITLES = [
    *('""', '"5"', '"abc"', '"b"', "0", "5", "5.5", "[1]", "absent", "false", "null", "true"),
    '{"b": 1}',
]


def titles_of(store: Tables, field: str, operator: str, value: Any) -> list[str]:
    body = query_body(
        filters=[where("event_name", "eq", KINDS[field]), where(field, operator, value)],
        group_by=["title"],
        orderBy=[{"field": "title"}],
    )
    return [row["title"] for row in query_rows(store, body)]


@pytest.mark.parametrize(("field", "operator", "value", "expected"), FILTERS)
def test_filter_matches(
    filtered: Tables, field: str, operator: str, value: Any, expected: list[str]
) -> None:
    assert titles_of(filtered, field, operator, value) == expected


@pytest.mark.parametrize(
    ("operator", "value", "opposite"),
    [
        ("ne", 5, "eq"),
        ("ne", True, "eq"),
        ("not_in", ["b", 5], "in"),
        ("not_contains", "b", "contains"),
        ("not_starts_with", "a", "starts_with"),
        ("not_ends_with", "c", "ends_with"),
        ("not_matches", "[a-b]", "matches"),
        ("is_not_set", None, "is_set"),
    ],
)
def test_negation_on_a_property_matches_all_others(
    filtered: Tables, operator: str, value: Any, opposite: str
) -> None:
    found = titles_of(filtered, "properties.k", opposite, value)
    rest = titles_of(filtered, "properties.k", operator, value)
    assert (set(found) & set(rest), sorted(found + rest)) == (set(), PROPERTY_TITLES)


def test_a_filter_takes_a_thousand_values(filtered: Tables) -> None:
    texts = [where("path", "in", ["/a", *(f"/{n}" for n in range(999))])]
    assert query_rows(filtered, query_body(filters=texts)) == [{"n": 1}]
    mixed = [where("properties.k", "in", [5, "b", *(n + 0.25 for n in range(998))])]
    assert query_rows(filtered, query_body(filters=mixed)) == [{"n": 2}]


def test_datetime_is_compared_to_the_millisecond_in_the_timezone(tables: Tables) -> None:
    timestamps = ["2026-01-05T22:59:59.999", "2026-01-05T23:00", "2026-01-05T23:00:00.001"]
    tables.insert(EVENTS, [event(when=when) for when in timestamps])
    for operator, count in (("eq", 1), ("ne", 2), ("gt", 1), ("gte", 2), ("lt", 1), ("lte", 2)):
        filters = [where("time", operator, "2026-01-06")]
        body = query_body(filters=filters, timezone="Europe/Berlin")
        assert query_rows(tables, body) == [{"n": count}]


# Ranges and buckets.


def ticking(store: Tables, first: str, days: int) -> None:
    """Store one event for each quarter of an hour (UTC)."""
    start = datetime.fromisoformat(first)
    timestamps = [start + timedelta(minutes=15 * n) for n in range(96 * days)]
    store.insert(
        EVENTS,
        [event(when=timestamp.isoformat(), session_id=str(timestamp)) for timestamp in timestamps],
    )


@pytest.mark.parametrize("table", ["events", "sessions"])
@pytest.mark.parametrize(
    ("zone", "day", "odd_hours"),
    [
        pytest.param("Europe/Berlin", "2026-03-29", {2: 0}, id="spring"),
        pytest.param("Europe/Berlin", "2026-10-25", {2: 8}, id="autumn"),
        pytest.param("Australia/Lord_Howe", "2026-10-04", {2: 2}, id="half an hour less"),
        pytest.param("Australia/Lord_Howe", "2026-04-05", {1: 6}, id="half an hour more"),
        pytest.param("America/Sao_Paulo", "2018-11-04", {0: 0}, id="no midnight"),
        pytest.param("Asia/Kathmandu", "2026-01-05", {}, id="three quarters off"),
        pytest.param("America/St_Johns", "2010-11-06", {23: 7}, id="23:01 again after 00:01"),
        pytest.param("America/St_Johns", "2010-11-07", {0: 5}, id="midnight twice"),
    ],
)
def test_hours_and_days_are_in_local_time(
    tables: Tables, table: str, zone: str, day: str, odd_hours: dict[int, int]
) -> None:
    before = datetime.fromisoformat(day) - timedelta(days=1)
    ticking(tables, before.isoformat(), 3)
    counts = dict.fromkeys(range(24), 4) | odd_hours
    root = {"startDate": day, "endDate": day, "timezone": zone, "table": table}
    assert query_rows(tables, query_body(**root, granularity="hourly")) == [
        {"date": f"{day} {hour:02}:00:00", "n": count} for hour, count in counts.items() if count
    ]
    total = sum(counts.values())
    assert query_rows(tables, query_body(**root, granularity="daily")) == [
        {"date": day, "n": total}
    ]
    assert query_rows(tables, query_body(**root)) == [{"n": total}]


def test_skipped_day_is_empty(tables: Tables) -> None:
    ticking(tables, "2011-12-29T00:00", 3)
    root: dict[str, Any] = {"timezone": "Pacific/Apia", "granularity": "daily", "fill": True}
    body = query_body(startDate="2011-12-30", endDate="2011-12-30", **root)
    assert query_rows(tables, body) == []
    assert query_rows(tables, query_body(startDate="2011-12-29", endDate="2011-12-31", **root)) == [
        {"date": "2011-12-29", "n": 96},
        {"date": "2011-12-31", "n": 96},
    ]


@pytest.mark.parametrize(
    ("start", "end"), [("0001-01-01", "0001-12-31"), ("9990-01-01", "9999-12-31")]
)
@pytest.mark.parametrize("table", ["events", "sessions", "profiles"])
def test_range_far_away_is_empty(tables: Tables, table: str, start: str, end: str) -> None:
    tables.insert(EVENTS, [event(session_id="s", anonymous_id="u")])
    body = query_body(table=table, startDate=start, endDate=end, timezone="Asia/Tokyo")
    assert query_rows(tables, body) == [{"n": 0}]


def test_results_with_and_without_gap_fill_have_the_same_order(tables: Tables) -> None:
    values: list[Any] = [5, "5", 0.5, True, None, "é", "a", [1], -1, 10**25, False, {}]
    tables.insert(
        EVENTS, [event(properties={"k": v}, path=p) for v in values for p in ("/a", "/b")]
    )
    for direction in ("asc", "desc"):
        order = [{"field": name, "direction": direction} for name in ("properties.k", "path")]
        body = query_body(group_by=["properties.k", "path"], granularity="daily", orderBy=order)
        day = {"startDate": "2026-01-05", "endDate": "2026-01-05"}
        plain = query_rows(tables, {**body, **day})
        assert query_rows(tables, {**body, **day, "fill": True}) == plain
        assert len(plain) == 24


# Sessions and profiles.


def sessions(store: Tables, *columns: str, **root: Any) -> list[tuple[Any, ...]]:
    body = query_body(
        table="sessions",
        group_by=["session_id", *columns],
        orderBy=[{"field": "session_id"}],
        **root,
    )
    return [tuple(list(row.values())[:-1]) for row in query_rows(store, body)]


def view(when: str, **columns: Any) -> Row:
    return event("screen_view", f"2026-01-05T{when}", **columns)


def test_session_is_counted_in_full_where_it_started(tables: Tables) -> None:
    tables.insert(
        EVENTS,
        [
            event(when="2026-01-04T23:59:59.999", session_id="early"),
            event(when="2026-01-05T00:00", session_id="early"),
            event(when="2026-01-05T23:59:59.999", session_id="late"),
            event(when="2026-01-06T00:30", session_id="late"),
            event(when="2026-01-06T00:00", session_id="next"),
            event(when="2026-01-05T12:00"),
        ],
    )
    day = {"startDate": "2026-01-05", "endDate": "2026-01-05"}
    found = sessions(tables, "duration", "event_count", "end_time", **day)
    assert found == [("late", 1800.001, 2, "2026-01-06T00:30:00.000Z")]
    assert query_rows(tables, query_body(table="sessions", granularity="daily")) == [
        {"date": "2026-01-04", "n": 1},
        {"date": "2026-01-05", "n": 1},
        {"date": "2026-01-06", "n": 1},
    ]


def test_session_texts_are_the_first_non_empty_ones(tables: Tables) -> None:
    rows = [
        view("10:00:02", path="/out", referrer="r2", country="DE"),
        view("10:00:00", path="", referrer="", country="", utm_source=""),
        view("10:00:01", path="/in", referrer="r1", country="", utm_source="news"),
        view("10:00:01", path="/second", referrer="r3", country="FR"),
        view("10:00:02", path="/last", referrer="r4"),
        view("10:00:03", path=""),
    ]
    tables.insert(EVENTS, in_order([{**row, "session_id": "s"} for row in rows]))
    columns = ("entry_path", "exit_path", "referrer", "country")
    assert sessions(tables, *columns) == [("s", "/in", "/last", "r1", "FR")]
    assert sessions(tables, "utm_source", "city") == [("s", "news", "")]


def test_session_has_the_first_visitor_that_is_not_missing(tables: Tables) -> None:
    visitors = {"none": [""], "one": ["u"], "two": ["", "u", "v"]}
    rows = [
        view(f"10:00:0{at}", session_id=session, anonymous_id=visitor)
        for session, ids in visitors.items()
        for at, visitor in enumerate(ids)
    ]
    tables.insert(EVENTS, rows)
    assert sessions(tables, "anonymous_id") == [("none", ""), ("one", "u"), ("two", "u")]
    body = query_body(select("anonymous_id", "uniq", "visitors"), table="sessions")
    assert query_rows(tables, body) == [{"visitors": 1}]


BOUNCES = [
    pytest.param([view("10:00:00")], True, id="one page view"),
    pytest.param([event(), event()], True, id="no page view"),
    pytest.param([view("10:00:00"), event(when="2026-01-05T10:00:09.999")], True, id="9.999 s"),
    pytest.param([view("10:00:00"), event(when="2026-01-05T10:00:10")], False, id="10 s"),
    pytest.param([view("10:00:00"), event("pageview", "2026-01-05T10:00")], False, id="two"),
]


@pytest.mark.parametrize(("rows", "is_bounce"), BOUNCES)
def test_bounce_has_at_most_one_page_view_and_takes_under_ten_seconds(
    tables: Tables, rows: list[Row], is_bounce: bool
) -> None:
    tables.insert(EVENTS, [{**row, "session_id": "s"} for row in rows])
    assert sessions(tables, "is_bounce") == [("s", is_bounce)]
    body = query_body(table="sessions", filters=[where("is_bounce", "eq", is_bounce)])
    assert query_rows(tables, body) == [{"n": 1}]


def test_bots_make_neither_sessions_nor_profiles(tables: Tables) -> None:
    ids = {"session_id": "s", "anonymous_id": "u"}
    tables.insert(EVENTS, [event(is_bot=True, **ids), event(when="2026-01-05T11:00", **ids)])
    assert sessions(tables, "event_count") == [("s", 1)]
    body = query_body(select("event_count", "sum", "n"), table="profiles")
    assert query_rows(tables, body) == [{"n": 1}]


def test_session_measures_are_aggregated_and_filtered(tables: Tables) -> None:
    for number in range(1, 5):
        rows = [view(f"10:00:{n:02}", session_id=f"s{number}") for n in range(number)]
        tables.insert(EVENTS, rows)
    body = query_body(
        select("page_views", "sum", "views"),
        select("duration", "p50", "median"),
        select("duration", "max", "longest"),
        select("session_id", "uniq", "sessions"),
        table="sessions",
        filters=[where("page_views", "gte", 2)],
    )
    assert query_rows(tables, body) == [{"views": 9, "median": 2, "longest": 3, "sessions": 3}]


def test_profile_is_counted_in_full_where_it_was_active(tables: Tables) -> None:
    columns = {"anonymous_id": "u", "country": "", "referrer": ""}
    rows: list[Row] = [
        event(when="2025-06-01T10:00", **{**columns, "referrer": "first", "country": "DE"}),
        view("12:00", **{**columns, "session_id": "s1", "utm_source": "ads"}),
        event(when="2026-02-01T10:00", **{**columns, "session_id": "s2", "country": "FR"}),
        event(when="2026-02-01T10:00", **{**columns, "referrer": "last", "utm_source": "x"}),
        event(when="2026-02-02T10:00", anonymous_id="later"),
        event(when="2026-01-05T10:00"),
    ]
    tables.insert(EVENTS, in_order(rows))
    groups = ["anonymous_id", "first_seen", "last_seen", "session_count", "event_count"]
    assert query_rows(tables, query_body(table="profiles", group_by=groups)) == [
        {
            "anonymous_id": "u",
            "first_seen": "2025-06-01T10:00:00.000Z",
            "last_seen": "2026-02-01T10:00:00.000Z",
            "session_count": 2,
            "event_count": 4,
            "n": 1,
        }
    ]
    groups = ["referrer", "utm_source", "country", "city", "page_views"]
    assert query_rows(tables, query_body(table="profiles", group_by=groups)) == [
        {
            "referrer": "first",
            "utm_source": "ads",
            "country": "FR",
            "city": "",
            "page_views": 1,
            "n": 1,
        }
    ]


def profiles_by_day(tables: Tables, zone: str, *days: str) -> dict[str, list[dict[str, Any]]]:
    """Return the result of one query for each day of a timezone: the number of active profiles."""
    return {
        day: query_rows(
            tables, query_body(table="profiles", startDate=day, endDate=day, timezone=zone)
        )
        for day in days
    }


def test_profile_is_not_active_by_a_minute_of_another_day(tables: Tables) -> None:
    """Clocks go back from 00:01 on the 7th to 23:01 on the 6th; 02:30 UTC is 00:00 on the 7th."""
    tables.insert(EVENTS, [event(when="2010-11-07T02:30:30", anonymous_id="u")])
    counts = profiles_by_day(tables, "America/St_Johns", "2010-11-06", "2010-11-07")
    assert counts == {"2010-11-06": [{"n": 0}], "2010-11-07": [{"n": 1}]}


def test_no_profile_is_active_on_a_skipped_day(tables: Tables) -> None:
    """At 10:00 UTC the 29th ends in Apia and the 31st begins."""
    session_rows = [
        event(when=f"2011-12-30T{at}", anonymous_id="u") for at in ("09:59:59", "10:00:00")
    ]
    tables.insert(EVENTS, session_rows)
    counts = profiles_by_day(tables, "Pacific/Apia", "2011-12-29", "2011-12-30", "2011-12-31")
    assert counts == {"2011-12-29": [{"n": 1}], "2011-12-30": [{"n": 0}], "2011-12-31": [{"n": 1}]}


def test_profile_is_active_on_both_sides_of_midnight(tables: Tables) -> None:
    """Midnight of the 6th in Kathmandu, 18:15 UTC, lies within one daily rollup of the store."""
    session_rows = [
        event(when=f"2026-01-05T18:{at}", anonymous_id="u") for at in ("14:59", "15:00")
    ]
    tables.insert(EVENTS, session_rows)
    days = ("2026-01-04", "2026-01-05", "2026-01-06", "2026-01-07")
    seen = profiles_by_day(tables, "Asia/Kathmandu", *days)
    counts = {day: rows[0]["n"] for day, rows in seen.items()}
    assert counts == {"2026-01-04": 0, "2026-01-05": 1, "2026-01-06": 1, "2026-01-07": 0}


def test_profile_is_not_active_between_two_events(tables: Tables) -> None:
    """The first one is on a UTC day that 11 January of Berlin begins in."""
    rows = [event(when=f"2026-01-{day}T10:00", anonymous_id="u") for day in (10, 12)]
    tables.insert(EVENTS, rows)
    assert profiles_by_day(tables, "Europe/Berlin", "2026-01-11") == {"2026-01-11": [{"n": 0}]}


@pytest.mark.parametrize(
    ("zone", "day", "before"),
    [
        ("America/St_Johns", "2010-11-06", "2010-11-06T02:29:59"),
        ("Asia/Kathmandu", "2026-01-05", "2026-01-04T18:14:59"),
    ],
)
def test_profile_is_not_active_through_a_bot_with_the_same_id(
    tables: Tables, zone: str, day: str, before: str
) -> None:
    """Both profiles are active before the day. On the day only `u` is; `v` is the id of a bot."""
    noon = f"{day}T12:00:00"
    rows = [event(when=when, anonymous_id="u") for when in (before, noon)]
    rows += [event(when=before, anonymous_id="v")]
    rows += [event(when=noon, anonymous_id="v", is_bot=True)]
    tables.insert(EVENTS, rows)
    root = {"table": "profiles", "startDate": day, "endDate": day, "timezone": zone}
    sent_query = query_body(group_by=["anonymous_id"], **root)
    assert query_rows(tables, sent_query) == [{"anonymous_id": "u", "n": 1}]


def test_events_with_equal_timestamps_are_ordered_by_id(tables: Tables) -> None:
    """The last bytes of the ids sort opposite to the first, and rows are stored out of order."""
    rows = {
        number: event(
            id=bytes([number] + [0] * 14 + [255 - number]),
            session_id="s",
            anonymous_id="u",
            path=f"/{number}",
            referrer=f"r{number}",
            country=f"C{number // 4}",  # of two daily rollups
        )
        for number in range(8)
    }
    tables.insert(EVENTS, [rows[number] for number in (5, 3, 6, 1)])
    for number in (7, 2, 4, 0):
        tables.insert(EVENTS, [rows[number]])
    columns = ["entry_path", "exit_path", "referrer", "country"]
    assert query_rows(tables, query_body(table="sessions", group_by=columns)) == [
        {"entry_path": "/0", "exit_path": "/7", "referrer": "r0", "country": "C0", "n": 1}
    ]
    assert query_rows(tables, query_body(table="profiles", group_by=["referrer", "country"])) == [
        {"referrer": "r0", "country": "C1", "n": 1}
    ]


def test_overlapping_sessions_are_distinguished_by_their_ends(tables: Tables) -> None:
    """The first rollup begins before the other one and ends after it."""
    countries = {"12:00": "FR", "12:01": "DE", "12:02": "FR"}
    tables.insert(
        EVENTS,
        [
            event(when=f"2026-01-05T{at}", session_id="s", anonymous_id="u", country=country)
            for at, country in countries.items()
        ],
    )
    expected = [{"country": "FR", "n": 1}]
    assert query_rows(tables, query_body(table="sessions", group_by=["country"])) == expected
    assert query_rows(tables, query_body(table="profiles", group_by=["country"])) == expected
