"""Statements by their parts: bound values, tables and rows read, expressions of columns."""

import re
from typing import Any

import pytest

from headrace.model.catalog import TABLES, Aggregate, Kind, Operator, Table
from headrace.model.plan import Granularity, Output, OutputKind
from headrace.query.sql.aggregates import COLUMN_AGGREGATES, DISTINCT_VALUES
from headrace.query.sql.conditions import IS_SET, MATCHES, MEMBERSHIPS, OPERATORS, PRESENCE
from headrace.query.sql.expressions import OUTPUT_KINDS, VALUES
from headrace.query.sql.time_buckets import BUCKET_KINDS
from testing.queries import COUNT, WEBSITE, query_body, select, statement_of, where


def conditions_of(body: Any) -> list[str]:
    """Return the SQL conditions for the filters of a body."""
    body = {**body, "query": {**body["query"], "groupBy": ["path"]}}
    filtered, plain = statement_of(body), statement_of(query_body(group_by=["path"]))
    return [line for line in where_of(filtered.sql) if line not in where_of(plain.sql)]


def where_of(sql: str) -> list[str]:
    found = re.search(r"\nWHERE\n(.*)\nGROUP BY", sql, re.DOTALL)
    assert found is not None
    return [line.strip().removesuffix(" AND") for line in found[1].split("\n")]


def test_minimal_statement() -> None:
    compiled = statement_of(query_body(timezone="Asia/Tokyo"))
    assert compiled.sql == (
        "SELECT\n"
        "    count() AS c0\n"
        "FROM events\n"
        "WHERE\n"
        "    website_id = {p0:String} AND\n"
        "    time >= fromUnixTimestamp64Milli({p1:Int64}, 'UTC') AND\n"
        "    time < fromUnixTimestamp64Milli({p2:Int64}, 'UTC') AND\n"
        "    NOT is_bot\n"
        "LIMIT {p3:UInt64} OFFSET {p4:UInt64}"
    )
    assert compiled.parameters == {
        "p0": WEBSITE,
        "p1": 1_767_193_200_000,
        "p2": 1_769_871_600_000,
        "p3": 1001,
        "p4": 0,
    }
    assert compiled.outputs == (Output("n", OutputKind.NUMBER),)


def test_outputs_are_date_then_groups_then_selects() -> None:
    body = query_body(
        COUNT,
        select("value", "avg"),
        group_by=["id", "time", "is_bot", "value", "properties.k", "path"][:5],
        granularity="hourly",
    )
    assert statement_of(body).outputs == (
        Output("date", OutputKind.HOUR),
        Output("id", OutputKind.TEXT),
        Output("time", OutputKind.DATETIME),
        Output("is_bot", OutputKind.BOOLEAN),
        Output("value", OutputKind.NUMBER),
        Output("properties.k", OutputKind.JSON),
        Output("n", OutputKind.NUMBER),
        Output("avg_value", OutputKind.NUMBER),
    )


def test_days_and_hours_are_bucketed_differently() -> None:
    assert statement_of(query_body(granularity="daily")).outputs[0].kind is OutputKind.DAY


def test_client_aliases_never_appear_in_the_statement() -> None:
    body = query_body(select("*", "count", "robert'); DROP"), group_by=["path"])
    assert "DROP" not in statement_of(body).sql


@pytest.mark.parametrize(
    ("table", "reads"),
    [
        ("events", ["mergeTreeProjection"]),
        ("sessions", ["mergeTreeProjection", "mergeTreeProjection"]),
        ("profiles", ["mergeTreeProjection", "mergeTreeProjection"]),
        ("errors", ["errors"]),
        ("performance", ["performance"]),
    ],
)
def test_website_is_the_first_condition_of_every_table_read(table: str, reads: list[str]) -> None:
    compiled = statement_of(query_body(table=table))
    found = re.findall(
        r"FROM (\w+)(?:\([^)]*\) AS visit)?\s+WHERE\s+website_id = \{p0:String\} AND",
        compiled.sql,
    )
    assert found == reads
    assert compiled.sql.count("{p0:") == compiled.sql.count("website_id") == len(reads)
    assert [name for name, value in compiled.parameters.items() if value == WEBSITE] == ["p0"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_parameter_has_its_placeholder(table: Table) -> None:
    body = query_body(
        table=table.name, group_by=["country"], filters=[where("country", "in", ["US"])]
    )
    compiled = statement_of(body)
    assert set(re.findall(r"\{(p\d+):", compiled.sql)) == set(compiled.parameters)


@pytest.mark.parametrize(
    ("table", "filters", "left_out"),
    [
        pytest.param("events", [], True, id="events"),
        pytest.param("errors", [], True, id="errors"),
        pytest.param("performance", [], True, id="performance"),
        pytest.param("events", [where("is_bot", "eq", True)], False, id="bots"),
        pytest.param("events", [where("is_bot", "in", [True, False])], False, id="both"),
        pytest.param(
            "events",
            [{"or": [where("path", "eq", "/"), {"and": [where("is_bot", "eq", True)]}]}],
            False,
            id="a group within a group",
        ),
        pytest.param("sessions", [], True, id="sessions"),
        pytest.param("profiles", [], True, id="profiles"),
    ],
)
def test_bots_are_left_out_unless_a_filter_names_is_bot(
    table: str, filters: list[Any], left_out: bool
) -> None:
    sql = statement_of(query_body(table=table, filters=filters)).sql
    assert ("NOT is_bot" in sql) is left_out


def test_grouping_by_is_bot_shows_no_bots() -> None:
    assert "NOT is_bot" in statement_of(query_body(group_by=["is_bot"])).sql


def test_one_row_more_than_the_limit_is_selected() -> None:
    compiled = statement_of(query_body(group_by=["path"], limit=20, offset=40))
    assert compiled.sql.endswith("LIMIT {p3:UInt64} OFFSET {p4:UInt64}")
    assert (compiled.parameters["p3"], compiled.parameters["p4"]) == (21, 40)


def test_local_time_is_computed_only_where_needed() -> None:
    one_day = {"startDate": "2010-11-06", "endDate": "2010-11-06"}
    clean = statement_of(query_body(timezone="Europe/Berlin", **one_day)).sql
    by_hour = statement_of(
        query_body(timezone="Europe/Berlin", granularity="hourly", **one_day)
    ).sql
    midnight_twice = statement_of(query_body(timezone="America/St_Johns", **one_day)).sql
    of_the_day = "toInt32(wall_ms / 86400000) BETWEEN {p3:Int64} AND {p4:Int64}"
    assert "wall_ms" not in clean
    assert "toInt32(wall_ms / 3600000) AS c0" in by_hour
    assert of_the_day not in by_hour
    assert of_the_day in midnight_twice


@pytest.mark.parametrize(
    ("timezone", "end", "expected"),
    [
        ("Asia/Kolkata", "2025-01-31", "epoch_ms + {p3:Int64}"),
        (
            "Europe/Berlin",
            "2025-04-30",
            "epoch_ms + {p3:Int64} + (epoch_ms >= {p4:Int64}) * {p5:Int64}",
        ),
        (
            "Europe/Berlin",
            "2027-12-31",
            (
                "epoch_ms + transform(roundDown(epoch_ms, {p3:Array(Int64)}), {p3:Array(Int64)},"
                " {p4:Array(Int64)}, 0)"
            ),
        ),
    ],
    ids=["no change", "one change", "six changes"],
)
def test_few_offset_changes_are_inlined(timezone: str, end: str, expected: str) -> None:
    days = {"startDate": "2025-01-01", "endDate": end}
    sql = statement_of(query_body(timezone=timezone, granularity="daily", **days)).sql
    assert f"    {expected} AS wall_ms\n" in sql


def test_gap_filled_query_selects_all_rows() -> None:
    body = query_body(group_by=["path"], granularity="daily", fill=True, limit=20, offset=40)
    compiled = statement_of(body)
    assert (compiled.parameters["p4"], compiled.parameters["p5"]) == (10_001, 0)


# Order.


def order_of(body: Any) -> str:
    found = re.search(r"\nORDER BY\n(.*)\nLIMIT", statement_of(body).sql, re.DOTALL)
    return "" if found is None else " ".join(found[1].split())


ASC, DESC = "ASC NULLS LAST", "DESC NULLS LAST"
ORDERS = [
    pytest.param(query_body(), "", id="one row"),
    pytest.param(query_body(granularity="daily"), f"c0 {ASC}", id="buckets"),
    pytest.param(
        query_body(group_by=["path", "url"]), f"c2 {DESC}, c0 {ASC}, c1 {ASC}", id="groups"
    ),
    pytest.param(
        query_body(group_by=["path"], granularity="daily"),
        f"c0 {ASC}, c2 {DESC}, c1 {ASC}",
        id="buckets and groups",
    ),
    pytest.param(
        query_body(group_by=["path"], granularity="daily", orderBy=[{"field": "path"}]),
        f"c1 {ASC}, c0 {ASC}, c2 {DESC}",
        id="orderBy first, ties as by default",
    ),
    pytest.param(
        query_body(
            COUNT,
            select("url", "uniq", "u"),
            group_by=["path"],
            orderBy=[{"field": "u", "direction": "desc"}, {"field": "n"}, {"field": "u"}],
        ),
        f"c2 {DESC}, c1 {ASC}, c0 {ASC}",
        id="a name that comes again decides nothing",
    ),
    pytest.param(
        query_body(group_by=["properties.k"]),
        f"c1 {DESC}, isNull(c0) ASC, transform(left(c0, 1), ['t', 'f', '\"', '{{', '['],"
        f" [2, 2, 3, 4, 4], 1) ASC, toFloat64OrNull(c0) {ASC},"
        f" if(startsWith(c0, '\"'), left(c0, -1), c0) {ASC}".replace("{{", "{"),
        id="values of a property by their type",
    ),
]


@pytest.mark.parametrize(("body", "order"), ORDERS)
def test_order_by_is_compiled(body: Any, order: str) -> None:
    assert order_of(body) == order


# Filters.


CONDITIONS = [
    pytest.param(where("path", "eq", "/"), "path = {p3:String}", id="text"),
    pytest.param(
        where("path", "contains", "%"), "position(path, {p3:String}) > 0", id="no pattern"
    ),
    pytest.param(where("path", "in", ["/"]), "path IN {p3:Array(String)}", id="texts"),
    pytest.param(
        where("value", "ne", 5), "ifNull(value + 0 != {p3:Float64}, true)", id="missing is not 5"
    ),
    pytest.param(
        where("value", "not_in", [5]),
        "ifNull(value + 0 NOT IN {p3:Array(Float64)}, true)",
        id="missing is in no array",
    ),
    pytest.param(
        where("value", "lt", 5), "ifNull(value + 0 < {p3:Float64}, false)", id="missing is not less"
    ),
    pytest.param(
        where("time", "gte", "2026-01-05"),
        "toUnixTimestamp64Milli(time) >= {p3:Int64}",
        id="datetime",
    ),
    pytest.param(
        where("properties.k", "not_in", ["x", 5, 5.0, 0.5, True]),
        "NOT ifNull(property_0 IN {p5:Array(String)}"
        " OR property_0_number IN {p6:Array(Float64)}, false)",
        id="values of a property",
    ),
    pytest.param(
        where("properties.k", "gt", 5),
        "ifNull(property_0_number > {p5:Float64}, false)",
        id="numbers of a property",
    ),
    pytest.param(
        where("properties.k", "not_contains", "x"),
        "ifNull(position(if(startsWith(property_0, '\"'),"
        " substring(property_0, 2, -1), NULL), {p5:String}) = 0, true)",
        id="texts of a property",
    ),
    pytest.param(where("path", "is_set", None), "(path != '')", id="text that is set"),
    pytest.param(where("value", "is_not_set", None), "NOT isNotNull(value)", id="missing number"),
    pytest.param(where("is_bot", "is_not_set", None), "NOT true", id="boolean that is not set"),
    pytest.param(
        where("properties.k", "is_not_set", None),
        "NOT ifNull(property_0 != '\"\"', false)",
        id="property that is not set",
    ),
]


@pytest.mark.parametrize(("filtered", "expected"), CONDITIONS)
def test_filter_is_a_condition_that_is_never_null(filtered: Any, expected: str) -> None:
    assert conditions_of(query_body(filters=[filtered])) == [expected]


def test_is_bot_is_a_condition_like_any_other() -> None:
    body = query_body(filters=[where("is_bot", "eq", True)], group_by=["path"])
    assert "is_bot = {p3:Bool}" in statement_of(body).sql


def test_property_values_are_distinguished_by_type() -> None:
    values = ["x", "5", 5, -0.0, 5.0, 0.5, 1e30, 2**80, True, False]
    compiled = statement_of(query_body(filters=[where("properties.k", "in", values)]))
    assert compiled.parameters["p5"] == [
        '"x"',
        '"5"',
        "5",
        "0",
        "5",
        "1208925819614629174706176",
        "true",
        "false",
    ]
    assert compiled.parameters["p6"] == [0.5, 1e30]


def test_property_filtered_by_texts_only_is_not_parsed_as_a_number() -> None:
    sql = statement_of(query_body(filters=[where("properties.k", "in", ["x", "5"])])).sql
    assert "ifNull(property_0 IN {p5:Array(String)}, false)" in sql
    assert "property_0_number" not in sql


def test_order_by_a_property_names_the_derived_column() -> None:
    sql = statement_of(query_body(group_by=["properties.k"])).sql
    rows, _, order = sql.partition("\n)\nORDER BY\n")
    assert rows.startswith("SELECT *\nFROM (\n    WITH\n")
    assert rows.endswith("GROUP BY\n        c0")
    assert "property_0" not in order


def test_property_is_looked_up_by_its_key_and_then_by_its_parts() -> None:
    compiled = statement_of(query_body(group_by=["properties.a.b"]))
    assert (
        "[if(JSONHas(properties, {p3:String}), JSONExtractRaw(properties, {p3:String}),"
        " JSONExtractRaw(properties, {p4:String}, {p5:String}))]"
    ) in compiled.sql
    assert [compiled.parameters[name] for name in ("p3", "p4", "p5")] == ["a.b", "a", "b"]


def test_property_is_looked_for_as_json_writes_its_key() -> None:
    compiled = statement_of(query_body(group_by=['properties.a"\\ü']))
    assert "simpleJSONExtractRaw(properties, {p4:String}) AS property_0_found" in compiled.sql
    assert compiled.parameters["p4"] == 'a\\"\\\\ü'


def test_property_is_defined_once_however_often_it_is_named() -> None:
    body = query_body(
        select("properties.k", "sum"),
        group_by=["properties.k"],
        filters=[where("properties.k", "gt", 5)],
    )
    sql = statement_of(body).sql
    names = ("property_0_found", "property_0", "property_0_number")
    assert [len(re.findall(rf"AS {name}\b", sql)) for name in names] == [1, 1, 1]


# Patterns that ignore the case of a text.


@pytest.mark.parametrize(
    ("pattern", "condition", "values"),
    [
        ("(?i)Ridge", "(position(lower(path), {p3:String}) > 0)", ["ridge"]),
        (r"(?i)\x{2f}A b", "(position(lower(path), {p3:String}) > 0)", ["/a b"]),
        (
            "(?i)Desk",
            (
                "(position(lower(path), {p3:String}) > 0"
                " OR multiSearchAny(path, {p4:Array(String)}) AND match(path, {p5:String}))"
            ),
            ["desk", ["\N{KELVIN SIGN}", "\N{LATIN SMALL LETTER LONG S}"], "(?-s)(?i)Desk"],
        ),
        ("Ridge", "match(path, {p3:String})", ["(?-s)Ridge"]),
        ("(?i)", "match(path, {p3:String})", ["(?-s)(?i)"]),
        ("(?i)a.b", "match(path, {p3:String})", ["(?-s)(?i)a.b"]),
        (r"(?i)\x{e9}", "match(path, {p3:String})", [r"(?-s)(?i)\x{e9}"]),
        ("(?i)é", "match(path, {p3:String})", [r"(?-s)[^\x00-\x{10FFFF}]|(?i)é"]),
    ],
)
def test_pattern_that_is_a_text_in_any_case_is_searched_for(
    pattern: str, condition: str, values: list[object]
) -> None:
    compiled = statement_of(query_body(filters=[where("path", "matches", pattern)]))
    assert condition in compiled.sql
    assert [compiled.parameters[f"p{number + 3}"] for number in range(len(values))] == values


# Ranges beyond the limits of the store.


@pytest.mark.parametrize(
    ("start", "end", "bound"),
    [
        ("0001-01-01", "0001-01-02", (0, 0)),
        ("9999-12-30", "9999-12-31", (10_413_792_000_000, 10_413_792_000_000)),
        ("1965-01-01", "1974-12-31", (0, 157_766_400_000)),
    ],
)
def test_range_is_clamped_to_the_store_limits(start: str, end: str, bound: tuple[int, int]) -> None:
    parameters = statement_of(query_body(startDate=start, endDate=end)).parameters
    assert (parameters["p1"], parameters["p2"]) == bound


# Completeness of the tables.


def test_every_kind_operator_function_and_bucket_has_its_row() -> None:
    queried = set(Kind) - {Kind.DIGEST}  # which no column of the catalog is
    assert {column.kind for table in TABLES for column in table.columns} <= queried
    assert set(VALUES) == set(OUTPUT_KINDS) == set(DISTINCT_VALUES) == queried
    assert {*OPERATORS, *MATCHES, *PRESENCE} == set(Operator)
    assert set(IS_SET) == queried
    assert set(MEMBERSHIPS) == {Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN}
    assert set(COLUMN_AGGREGATES) == set(Aggregate) - {Aggregate.COUNT, Aggregate.UNIQ}
    assert set(BUCKET_KINDS) == set(Granularity)
