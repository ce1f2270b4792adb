"""From stored rows to result rows: JSON values, gap filling and order."""

from typing import Any

import pytest

from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model.plan import Direction, OutputKind
from headrace.ports.store import CHDB_DIALECT
from headrace.query.gap_fill import fill_buckets
from headrace.query.result_values import FORMATTERS, format_rows
from headrace.query.sql.compile import compile_query
from headrace.query.sql.order_by import OrderKey, sort_rows
from testing.queries import COUNT, plan_of, query_body, select

FORMATTED = [
    pytest.param(OutputKind.TEXT, "/é\n", "/é\n", id="text"),
    pytest.param(OutputKind.TEXT, "", "", id="empty text"),
    pytest.param(OutputKind.NUMBER, 5, 5, id="count"),
    pytest.param(OutputKind.NUMBER, 5.0, 5, id="whole number"),
    pytest.param(OutputKind.NUMBER, 0.1, 0.1, id="fraction"),
    pytest.param(OutputKind.NUMBER, -0.0, 0, id="minus zero"),
    pytest.param(OutputKind.NUMBER, 1e300, 1e300, id="large number"),
    pytest.param(OutputKind.NUMBER, 278908409818195070000, 2.7890840981819507e20, id="double"),
    pytest.param(OutputKind.NUMBER, float("nan"), None, id="not a number"),
    pytest.param(OutputKind.NUMBER, float("-inf"), None, id="infinity"),
    pytest.param(OutputKind.NUMBER, None, None, id="null"),
    pytest.param(OutputKind.BOOLEAN, True, True, id="true"),
    pytest.param(OutputKind.BOOLEAN, 0, False, id="false as a number"),
    pytest.param(OutputKind.DATETIME, 1_767_607_200_000, "2026-01-05T10:00:00.000Z", id="moment"),
    pytest.param(OutputKind.DATETIME, 946_684_800_007, "2000-01-01T00:00:00.007Z", id="7 ms"),
    pytest.param(OutputKind.DAY, 20_458, "2026-01-05", id="day"),
    pytest.param(OutputKind.DAY, 0, "1970-01-01", id="first day"),
    pytest.param(OutputKind.WEEK, 0, "1969-12-29", id="first week"),
    pytest.param(OutputKind.WEEK, 2923, "2026-01-05", id="week"),
    pytest.param(OutputKind.MONTH, 24_312, "2025-12-01", id="December"),
    pytest.param(OutputKind.MONTH, 24_313, "2026-01-01", id="January"),
    pytest.param(OutputKind.DAY, -719_162, "0001-01-01", id="first day of all"),
    pytest.param(OutputKind.HOUR, 20_458 * 24 + 7, "2026-01-05 07:00:00", id="hour"),
    pytest.param(OutputKind.HOUR, -1, "1969-12-31 23:00:00", id="hour before 1970"),
    pytest.param(OutputKind.JSON, '""', "", id="empty text of a property"),
    pytest.param(OutputKind.JSON, '"5"', "5", id="text of digits"),
    pytest.param(OutputKind.JSON, '"a"b\\n"', 'a"b\\n', id="text with quotes"),
    pytest.param(OutputKind.JSON, "5", 5, id="number of a property"),
    pytest.param(OutputKind.JSON, "-0.25", -0.25, id="fraction of a property"),
    pytest.param(OutputKind.JSON, "9007199254740993", 9_007_199_254_740_993, id="past doubles"),
    pytest.param(OutputKind.JSON, "1" * 30, int("1" * 30), id="past 64 bits"),
    pytest.param(OutputKind.JSON, "1e21", 1e21, id="number with an exponent"),
    pytest.param(OutputKind.JSON, "true", True, id="true of a property"),
    pytest.param(OutputKind.JSON, "false", False, id="false of a property"),
    pytest.param(OutputKind.JSON, '{"b":1,"a":["\\u2028"]}', '{"b":1,"a":["\u2028"]}', id="object"),
    pytest.param(OutputKind.JSON, "[]", "[]", id="empty array"),
    pytest.param(OutputKind.JSON, None, None, id="missing property"),
]

PLAIN: dict[OutputKind, list[Any]] = {OutputKind.NUMBER: [1, 0.5], OutputKind.TEXT: ["a"]}
"""Values that need no conversion."""


@pytest.mark.parametrize(("kind", "value", "formatted"), FORMATTED)
def test_value_is_formatted(kind: OutputKind, value: Any, formatted: Any) -> None:
    ((found,),) = format_rows([[value]], [kind])
    assert (found, type(found)) == (formatted, type(formatted))


@pytest.mark.parametrize(("kind", "value", "formatted"), FORMATTED)
def test_value_is_formatted_independently_of_its_neighbours(
    kind: OutputKind, value: Any, formatted: Any
) -> None:
    plain = PLAIN.get(kind, [])
    found = format_rows([[one] for one in (*plain, value, *plain)], [kind])
    assert repr(found) == repr([[one] for one in (*plain, formatted, *plain)])


def test_every_kind_has_a_formatter() -> None:
    assert set(FORMATTERS) == set(OutputKind)


def test_rows_keep_their_order_and_columns() -> None:
    rows = [[20_458, "b", 1.5], [20_459, "a", None]]
    kinds = [OutputKind.DAY, OutputKind.TEXT, OutputKind.NUMBER]
    assert format_rows(rows, kinds) == [["2026-01-05", "b", 1.5], ["2026-01-06", "a", None]]


def test_empty_rows_stay_empty() -> None:
    assert format_rows([], [OutputKind.DAY, OutputKind.TEXT]) == []


def test_equal_values_of_different_types_are_formatted_alike() -> None:
    rows: list[list[Any]] = [[1, 1], [1.0, True], [0, False], [-0.0, 0]]
    formatted = format_rows(rows, [OutputKind.NUMBER, OutputKind.BOOLEAN])
    assert repr(formatted) == "[[1, True], [1, True], [0, False], [0, False]]"


# Order.


MIXED = [
    "-5",
    "0.5",
    "10",
    "false",
    "true",
    '""',
    '"10"',
    '"Z"',
    '"a"',
    '"a!"',
    '"é"',
    "[1]",
    '{"a":1}',
    None,
]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        pytest.param(["", "A", "Z", "a", "é", "\uff21", "\U0001f600"], OutputKind.TEXT, id="text"),
        pytest.param([-3, 0, 2.5, 10, None], OutputKind.NUMBER, id="numbers"),
        pytest.param([False, True], OutputKind.BOOLEAN, id="booleans"),
        pytest.param(MIXED, OutputKind.JSON, id="values of a property"),
    ],
)
def test_null_comes_last_in_both_directions(values: list[Any], kind: OutputKind) -> None:
    present = [value for value in values if value is not None]
    missing = [None] * (len(values) - len(present))
    for direction, expected in (
        (Direction.ASC, present + missing),
        (Direction.DESC, present[::-1] + missing),
    ):
        rows = [[value] for value in sorted(values, key=repr)]
        sort_rows(rows, [OrderKey(0, kind, direction)])
        assert [row[0] for row in rows] == expected


def test_first_key_decides_and_then_the_next() -> None:
    rows: list[list[Any]] = [["b", 1], ["a", 2], ["c", 2], ["d", None]]
    sort_rows(
        rows,
        [
            OrderKey(1, OutputKind.NUMBER, Direction.DESC),
            OrderKey(0, OutputKind.TEXT, Direction.DESC),
        ],
    )
    assert rows == [["c", 2], ["a", 2], ["b", 1], ["d", None]]


# Gap filling.


def filled(body: Any, rows: list[list[Any]]) -> list[list[Any]]:
    plan = plan_of({**body, "fill": True})
    return fill_buckets(plan, compile_query(plan, CHDB_DIALECT).outputs, rows)


FOUR_DAYS = {"granularity": "daily", "startDate": "2026-01-05", "endDate": "2026-01-08"}
SELECTS = [
    select("*", "count", "count"),
    select("path", "uniq", "uniq"),
    select("value", "sum", "sum"),
    select("value", "avg", "avg"),
    select("value", "max", "max"),
    select("value", "min", "min"),
    select("value", "p50", "p50"),
]


def test_empty_bucket_has_0_for_counts_and_sums_and_null_for_the_rest() -> None:
    found = [20_459, 1, 1, 2.5, 2.5, 2.5, 2.5, 2.5]
    empty = [0, 0, 0, None, None, None, None]
    assert filled(query_body(*SELECTS, **FOUR_DAYS), [found]) == [
        [20_458, *empty],
        found,
        [20_460, *empty],
        [20_461, *empty],
    ]


def test_every_group_of_the_result_is_in_every_bucket() -> None:
    body = query_body(COUNT, group_by=["path"], **{**FOUR_DAYS, "endDate": "2026-01-06"})
    assert filled(body, [[20_458, "/b", 3], [20_459, "/a", 1]]) == [
        [20_458, "/b", 3],
        [20_458, "/a", 0],
        [20_459, "/a", 1],
        [20_459, "/b", 0],
    ]


def test_missing_value_of_a_property_is_a_group_too() -> None:
    body = query_body(COUNT, group_by=["properties.k"], **{**FOUR_DAYS, "endDate": "2026-01-06"})
    assert filled(body, [[20_458, None, 1], [20_458, '"x', 1]]) == [
        [20_458, '"x', 1],
        [20_458, None, 1],
        [20_459, '"x', 0],
        [20_459, None, 0],
    ]


def test_gap_fill_without_groups_adds_nothing() -> None:
    assert filled(query_body(COUNT, group_by=["path"], **FOUR_DAYS), []) == []


def test_filled_rows_are_in_the_requested_order() -> None:
    order = [{"field": "n"}, {"field": "date", "direction": "desc"}]
    rows = filled(query_body(COUNT, **FOUR_DAYS, orderBy=order), [[20_459, 2], [20_461, 1]])
    assert rows == [[20_460, 0], [20_458, 0], [20_461, 1], [20_459, 2]]


def test_hours_that_the_clock_skips_are_not_filled() -> None:
    root = {"granularity": "hourly", "startDate": "2026-03-29", "endDate": "2026-03-29"}
    rows = filled(query_body(COUNT, **root, timezone="Europe/Berlin"), [])
    assert [hour % 24 for hour, _ in rows] == [0, 1, *range(3, 24)]


def test_ten_thousand_filled_rows_are_the_most() -> None:
    body = query_body(COUNT, group_by=["path"], **{**FOUR_DAYS, "endDate": "2026-01-06"})
    assert len(filled(body, [[20_458, f"/{n}", 1] for n in range(5000)])) == 10_000
    with pytest.raises(InvalidQuery) as rejection:
        filled(body, [[20_458, f"/{n}", 1] for n in range(5001)])
    assert rejection.value.code is QueryErrorCode.INVALID_FILL
    assert str(rejection.value) == (
        "Invalid fill: the result would have 10002 rows, maximum is 10000;"
        " use fewer days, fewer groups or a coarser granularity"
    )


def test_too_many_filled_rows_of_the_compared_range_are_named_as_such() -> None:
    compare = {"startDate": "2025-12-01", "endDate": "2025-12-04"}
    body = query_body(COUNT, group_by=["path"], **FOUR_DAYS, compare=compare)
    rows = [[20_458, f"/{n}", 0, 1, 0, 1] for n in range(2501)]
    with pytest.raises(InvalidQuery) as rejection:
        filled(body, rows)
    assert str(rejection.value) == (
        "Invalid fill: the compared range would have 10004 rows, maximum is 10000;"
        " use fewer days, fewer groups or a coarser granularity"
    )
