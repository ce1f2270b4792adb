"""Bodies that are not query requests, each with its full error message."""

from typing import Any

import pytest

from headrace.model.wire import Filter, OrderBy, Query, QueryRequest, Select
from headrace.query.validate.decode import CUSTOM_QUERY, decode_query
from headrace.query.validate.decode_body import explain_validation_error
from testing.queries import as_bytes, query_body, rejection_of, select, where


def sent_query(**parts: Any) -> dict[str, Any]:
    """Return a body whose query object also has these keys."""
    body = query_body()
    return {**body, "query": {**body["query"], **parts}}


def nested_groups(depth: int) -> dict[str, Any]:
    """Return a filter within so many groups."""
    return {"or": [nested_groups(depth - 1)]} if depth else where("path", "eq", "/")


MALFORMED = [
    pytest.param(b"", "it is not valid JSON", id="nothing"),
    pytest.param(b"{", "it is not valid JSON", id="cut off"),
    pytest.param(
        b'{"query":{"table":"events","selects":[]}}]',
        "it is not valid JSON (trailing characters at byte 42)",
        id="something behind",
    ),
    pytest.param(
        b"{'a':1}",
        "it is not valid JSON (object keys must be strings at byte 1)",
        id="single quotes",
    ),
    pytest.param(
        b'{"limit":NaN}', "it is not valid JSON (invalid character at byte 9)", id="not a number"
    ),
    pytest.param(b"\xef\xbb\xbf{}", "it is not valid JSON (invalid character at byte 0)", id="BOM"),
    pytest.param(b'{"limit":"\xff"}', "it is not valid JSON", id="not UTF-8"),
    pytest.param(b'{"limit":"\\ud800"}', "it is not valid JSON", id="lone surrogate"),
    pytest.param(b'{"limit":' + b"[" * 100_000, "it is nested too deeply", id="nested"),
    pytest.param(b'{"limit":1e999}', "number out of range in limit", id="too large a number"),
]


@pytest.mark.parametrize(("body", "why"), MALFORMED)
def test_body_that_is_not_json_is_rejected(body: bytes, why: str) -> None:
    assert rejection_of(body) == ("INVALID_BODY", f"Invalid request body: {why}")


OF_ANOTHER_SHAPE = [
    pytest.param(
        sent_query(filters=[nested_groups(300)]), "it is nested too deeply", id="nested filters"
    ),
    pytest.param(
        sent_query(selects=[{**select("*", "count"), "filters": [nested_groups(300)]}]),
        "it is nested too deeply",
        id="nested filters of a select",
    ),
    pytest.param([], "it must be an object, not an array", id="array"),
    pytest.param("x", "it must be an object, not a string", id="text"),
    pytest.param(5, "it must be an object, not a number", id="number"),
    pytest.param(None, "it must be an object, not null", id="null"),
    pytest.param(True, "it must be an object, not true or false", id="boolean"),
    pytest.param({}, 'missing key "query"', id="empty"),
    pytest.param({"query": []}, "query must be an object, not an array", id="query"),
    pytest.param({"query": {}}, 'missing key "table" in query', id="no table"),
    pytest.param({"query": {"table": "x"}}, 'missing key "selects" in query', id="no selects"),
    pytest.param(sent_query(table=5), "query.table must be a string, not a number", id="table"),
    pytest.param(sent_query(table=None), "query.table must be a string, not null", id="null table"),
    pytest.param(
        sent_query(selects={}), "query.selects must be an array, not an object", id="selects"
    ),
    pytest.param(
        sent_query(selects=[select("*", "count"), 5]),
        "query.selects[1] must be an object, not a number",
        id="select",
    ),
    pytest.param(
        sent_query(selects=[{"field": "*"}]),
        'missing key "aggregate" in query.selects[0]',
        id="no aggregate",
    ),
    pytest.param(
        sent_query(selects=[{"field": "*", "aggregate": 1}]),
        "query.selects[0].aggregate must be a string, not a number",
        id="aggregate",
    ),
    pytest.param(
        sent_query(selects=[{"field": "*", "aggregate": "count", "alias": []}]),
        "query.selects[0].alias must be a string, not an array",
        id="alias",
    ),
    pytest.param(
        sent_query(filters="x"), "query.filters must be an array, not a string", id="filters"
    ),
    pytest.param(
        query_body(filters=[{"or": [{"and": [{"operator": "eq", "value": 1}]}]}]),
        'missing key "field" in query.filters[0].or[0].and[0]',
        id="filter in groups without a field",
    ),
    pytest.param(
        query_body({"field": "*", "aggregate": "count", "filters": [{"fild": "path"}]}),
        'unknown key "fild" in query.selects[0].filters[0] (did you mean "field"?)',
        id="unknown key in a select's filter",
    ),
    pytest.param(
        query_body({"field": "*", "aggregate": "count", "filters": [{"field": "path"}]}),
        'missing key "operator" in query.selects[0].filters[0]',
        id="select's filter without an operator",
    ),
    pytest.param(
        query_body(having=[{"fild": "n"}]),
        'unknown key "fild" in having[0] (did you mean "field"?)',
        id="unknown key in having",
    ),
    pytest.param(
        query_body(filters=[{"operator": "is_set"}]),
        'missing key "field" in query.filters[0]',
        id="is_set without a field",
    ),
    pytest.param(
        query_body(filters=[{"or": None}]),
        'missing key "field" in query.filters[0]',
        id="group that is null",
    ),
    pytest.param(
        query_body(filters=[{"and": {}}]),
        "query.filters[0].and must be an array, not an object",
        id="group",
    ),
    pytest.param(
        query_body(filters=[{"or": [{"and": [{"fild": "path"}]}]}]),
        'unknown key "fild" in query.filters[0].or[0].and[0] (did you mean "field"?)',
        id="unknown key within groups",
    ),
    pytest.param(
        sent_query(filters=[{"field": "path", "operator": "eq"}]),
        'missing key "value" in query.filters[0]',
        id="no value",
    ),
    pytest.param(
        sent_query(filters=[{"field": "path", "operator": "isSet"}]),
        'missing key "value" in query.filters[0], and the operator "isSet" is unknown'
        ' (did you mean "is_set"?)',
        id="no value beside a misspelled operator that takes none",
    ),
    pytest.param(
        sent_query(filters=[{"or": [{"field": "path", "operator": "exists"}]}]),
        'missing key "value" in query.filters[0].or[0], and the operator "exists" is unknown'
        ' (did you mean "is_set"?)',
        id="no value beside the operator of another language",
    ),
    pytest.param(
        sent_query(filters=[where("path", "eq", {})]),
        "query.filters[0].value must be true or false, a number, a string or an array,"
        " not an object",
        id="value",
    ),
    pytest.param(
        sent_query(filters=[where("path", "in", ["/", ["/a"]])]),
        "query.filters[0].value[1] must be true or false, a number or a string, not an array",
        id="value in an array",
    ),
    pytest.param(
        sent_query(groupBy="path"), "query.groupBy must be an array, not a string", id="groupBy"
    ),
    pytest.param(
        sent_query(groupBy=["path", None]),
        "query.groupBy[1] must be a string, not null",
        id="group column",
    ),
    pytest.param(query_body(orderBy={}), "orderBy must be an array, not an object", id="orderBy"),
    pytest.param(
        query_body(orderBy=[{}]), 'missing key "field" in orderBy[0]', id="order without field"
    ),
    pytest.param(
        query_body(orderBy=[{"field": "n", "direction": 1}]),
        "orderBy[0].direction must be a string, not a number",
        id="direction",
    ),
]


@pytest.mark.parametrize(("body", "why"), OF_ANOTHER_SHAPE)
def test_body_with_another_structure_is_rejected(body: Any, why: str) -> None:
    assert rejection_of(body) == ("INVALID_BODY", f"Invalid request body: {why}")


KEYS_OF_ROOT = (
    "(one of query, startDate, endDate, timezone, granularity, limit, orderBy, offset, fill,"
    " having, lastDays, compare, totals, top, others)"
)
UNKNOWN_KEYS = [
    pytest.param(
        sent_query(groupby=[]), 'unknown key "groupby" (did you mean "groupBy"?)', id="query"
    ),
    pytest.param(
        query_body(startdate="x"), 'unknown key "startdate" (did you mean "startDate"?)', id="root"
    ),
    pytest.param(
        sent_query(selects=[{**select("*", "count"), "rate": "n"}]),
        'unknown key "rate" in query.selects[0] (one of field, aggregate, alias, filters)',
        id="select, nothing close",
    ),
    pytest.param(
        sent_query(filters=[{**where("path", "eq", "/"), "Value": 1}]),
        'unknown key "Value" in query.filters[0] (did you mean "value"?)',
        id="filter",
    ),
    pytest.param(
        sent_query(filters=[{"field": "path", "op": "eq", "value": "/"}]),
        'unknown key "op" in query.filters[0] (did you mean "operator"?)',
        id="filter, the beginning of a key",
    ),
    pytest.param(
        query_body(orderBy=[{"field": "n", "nulls": "asc"}]),
        'unknown key "nulls" in orderBy[0] (one of field, direction)',
        id="orderBy, nothing close",
    ),
    pytest.param(
        query_body(orderBy=[{"field": "n", "order": "asc"}]),
        'unknown key "order" in orderBy[0] (did you mean "direction"?)',
        id="a word for another key of the object",
    ),
    pytest.param(
        query_body(order=[{"field": "n"}]),
        'unknown key "order" (did you mean "orderBy"?)',
        id="the same word in the outermost object",
    ),
    pytest.param(
        query_body(where=[]),
        'unknown key "where" (did you mean "filters" in query or query.selects?)',
        id="a word for a key of another object",
    ),
    pytest.param(
        query_body(dateRange=[]),
        'unknown key "dateRange" (did you mean "startDate" and "endDate"?)',
        id="a word for two keys",
    ),
    pytest.param(
        sent_query(limit=5),
        'unknown key "limit" (it belongs in the outermost object)',
        id="too deep",
    ),
    pytest.param(
        query_body(groupBy=["path"]), 'unknown key "groupBy" (it belongs in query)', id="too high"
    ),
    pytest.param(
        sent_query(order_by=[]),
        'unknown key "order_by" (did you mean "orderBy" in the outermost object?)',
        id="too deep and misspelled",
    ),
    pytest.param(
        query_body(groupby=["path"]),
        'unknown key "groupby" (did you mean "groupBy" in query?)',
        id="too high and misspelled",
    ),
    pytest.param(
        sent_query(selects=[{**select("*", "count"), "operator": "eq"}]),
        'unknown key "operator" in query.selects[0] (it belongs in query.filters,'
        " query.selects.filters or having)",
        id="beside its place",
    ),
    pytest.param(
        query_body(field="path"),
        'unknown key "field" (it belongs in query.selects, query.filters, query.selects.filters,'
        " orderBy or having)",
        id="several places",
    ),
    pytest.param(
        {**query_body(), "k" * 200: 1}, f'unknown key "{"k" * 100}…" {KEYS_OF_ROOT}', id="very long"
    ),
    pytest.param({**query_body(), 'a`"b': 1}, f'unknown key "a`\\"b" {KEYS_OF_ROOT}', id="awkward"),
]


@pytest.mark.parametrize(("body", "why"), UNKNOWN_KEYS)
def test_unknown_key_is_rejected_anywhere(body: Any, why: str) -> None:
    assert rejection_of(body) == ("INVALID_BODY", f"Invalid request body: {why}")


def test_every_key_is_decoded_into_its_field() -> None:
    body = query_body(
        {"field": "path", "aggregate": "uniq", "alias": "x"},
        table="errors",
        filters=[where("path", "in", ["/", 1, 2.5, True, None])],
        group_by=["level"],
        timezone="UTC",
        granularity="daily",
        limit=5,
        offset=6,
        fill=True,
        orderBy=[{"field": "x", "direction": "desc"}],
    )
    assert decode_query(as_bytes(body)) == QueryRequest(
        query=Query(
            table="errors",
            selects=[Select("path", "uniq", "x")],
            filters=[Filter("path", "in", ["/", 1, 2.5, True, None])],
            group_by=["level"],
        ),
        start_date="2026-01-01",
        end_date="2026-01-31",
        timezone="UTC",
        granularity="daily",
        limit=5,
        order_by=[OrderBy("x", "desc")],
        offset=6,
        fill=True,
    )


def test_of_repeated_keys_the_last_wins() -> None:
    body = as_bytes(query_body())[:-1] + b',"limit":5,"limit":6}'
    assert decode_query(body).limit == 6


def test_root_scalars_are_not_type_checked() -> None:
    assert decode_query(as_bytes(query_body(limit=[], timezone=5))).limit == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", "it is not valid"),
        (" - at `$.query`", "it is not valid in query"),
        ("A rule of the next release", "a rule of the next release"),
        ("A rule of the next release - at `$.limit`", "a rule of the next release in limit"),
        ("Expected `uuid | null`, got `tuple`", "it must be of type uuid, not of type tuple"),
        ("Expected `null`, got `str`", "it must be null, not a string"),
        (
            "Object contains unknown field `x` - at `$.new[...].deep`",
            "object contains unknown field `x` in new[...].deep",
        ),
    ],
)
def test_message_of_unknown_form_gives_a_generic_error(message: str, expected: str) -> None:
    assert explain_validation_error(message, CUSTOM_QUERY.objects) == expected
