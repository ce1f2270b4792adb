"""From a file or options to a query body, and from a result to a table."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.base.clock import FixedClock
from headrace.base.errors import OperatorError
from headrace.cli.query.client import Call, QueryResponse
from headrace.cli.query.compose import QueryOptions, compose_query, compose_saved_query
from headrace.cli.query.render import (
    print_result_csv,
    print_result_table,
    print_standard_tables,
)

LATE = FixedClock(1_767_222_000_000)  # 2025-12-31T23:00:00Z
COUNT = {"field": "*", "aggregate": "count", "alias": None}
COUNT_EVENTS = {"table": "events", "selects": [COUNT], "filters": [], "groupBy": []}


def composed(source: Path | None = None, **options: Any) -> Any:
    return msgspec.json.decode(call_of(source, **options).body or b"")


def call_of(source: Path | None = None, **options: Any) -> Call:
    return compose_query(None if source is None else str(source), QueryOptions(**options), LATE)


def composed_to_save(source: Path | None = None, **options: Any) -> Any:
    path = None if source is None else str(source)
    return msgspec.json.decode(compose_saved_query(path, QueryOptions(**options)))


def rejection(source: Path | None = None, **options: Any) -> str:
    with pytest.raises(OperatorError) as caught:
        composed(source, **options)
    return str(caught.value)


def written(directory: Path, content: object) -> Path:
    file = directory / "question.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return file


def test_table_alone_counts_the_rows_of_seven_days() -> None:
    assert composed(table="events") == {
        "query": COUNT_EVENTS,
        "startDate": "2025-12-25",
        "endDate": "2025-12-31",
    }


def test_every_option_is_mapped() -> None:
    assert composed(
        table="events",
        selects=("uniq(anonymous_id) as visitors", "count"),
        filters=("country = DE", "value > 3"),
        any_filters=("path = /a", "path = /b"),
        groups=("path, country", "title"),
        first="2026-01-01",
        last="2026-01-31",
        timezone="Europe/Berlin",
        granularity="daily",
        order=("visitors desc, path", "country asc"),
        limit=20,
        offset=40,
        fill=True,
    ) == {
        "query": {
            "table": "events",
            "selects": [
                {"field": "anonymous_id", "aggregate": "uniq", "alias": "visitors"},
                COUNT,
            ],
            "filters": [
                {"field": "country", "operator": "eq", "value": "DE"},
                {"field": "value", "operator": "gt", "value": 3},
                {
                    "or": [
                        {"field": "path", "operator": "eq", "value": "/a"},
                        {"field": "path", "operator": "eq", "value": "/b"},
                    ]
                },
            ],
            "groupBy": ["path", "country", "title"],
        },
        "startDate": "2026-01-01",
        "endDate": "2026-01-31",
        "timezone": "Europe/Berlin",
        "granularity": "daily",
        "orderBy": [
            {"field": "visitors", "direction": "desc"},
            {"field": "path", "direction": None},
            {"field": "country", "direction": "asc"},
        ],
        "limit": 20,
        "offset": 40,
        "fill": True,
    }


DAYS = {
    "today of the timezone": ({"timezone": "Europe/Berlin"}, "2025-12-26", "2026-01-01"),
    "today of another": ({"timezone": "America/New_York"}, "2025-12-25", "2025-12-31"),
    "unknown timezone": ({"timezone": "Berlin"}, "2025-12-25", "2025-12-31"),
    "first day alone": ({"first": "2025-11-01"}, "2025-11-01", "2025-12-31"),
    "last day alone": ({"last": "2025-03-03"}, "2025-02-25", "2025-03-03"),
    "last day that is none": ({"last": "yesterday"}, "2025-12-25", "yesterday"),
    "last day with none before": ({"last": "0001-01-02"}, "2025-12-25", "0001-01-02"),
}


@pytest.mark.parametrize(("options", "first", "last"), DAYS.values(), ids=list(DAYS))
def test_default_range_is_seven_days(options: dict[str, Any], first: str, last: str) -> None:
    body = composed(table="events", **options)
    assert (body["startDate"], body["endDate"]) == (first, last)


def test_file_is_sent_as_it_is(tmp_path: Path) -> None:
    body = {
        "query": {"table": "evnts", "oops": [1.5, None, "ä"]},
        "startDate": "2025-01-01",
        "endDate": 7,
        "limt": 3,
    }
    assert composed(written(tmp_path, body)) == body


def test_file_may_have_only_the_query(tmp_path: Path) -> None:
    assert composed(written(tmp_path, {"table": "events"}), limit=5) == {
        "query": {"table": "events"},
        "startDate": "2025-12-25",
        "endDate": "2025-12-31",
        "limit": 5,
    }


def test_options_override_the_file(tmp_path: Path) -> None:
    body = {
        "query": COUNT_EVENTS,
        "startDate": "2025-01-01",
        "endDate": None,
        "timezone": "Europe/Berlin",
        "limit": 3,
        "orderBy": [{"field": "path"}],
    }
    assert composed(written(tmp_path, body), limit=4, order=("count_all",)) == {
        "query": COUNT_EVENTS,
        "startDate": "2025-01-01",
        "endDate": "2026-01-01",
        "timezone": "Europe/Berlin",
        "limit": 4,
        "orderBy": [{"field": "count_all", "direction": None}],
    }


def test_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = written(tmp_path, b"\xef\xbb\xbf" + json.dumps(COUNT_EVENTS).encode())
    assert composed(file)["query"] == COUNT_EVENTS


FILES = {
    "no JSON": (b"{", "invalid JSON: Input data was truncated"),
    "no UTF-8": (b'{"table": "\xff"}', "invalid JSON: "),
    "array": (b"[]", "it is not a JSON object"),
    "text": (b'"events"', "it is not a JSON object"),
    "nested without end": (b"[" * 100_000, "it is not a JSON object"),
    "nested in an object": (b'{"query":' + b"[" * 100_000, "invalid JSON: "),
    "empty": (b"", "invalid JSON: Input data was truncated"),
}


@pytest.mark.parametrize(("content", "why"), FILES.values(), ids=list(FILES))
def test_file_without_a_query_is_rejected(tmp_path: Path, content: bytes, why: str) -> None:
    file = written(tmp_path, content)
    assert rejection(file).startswith(f"cannot read {file}: {why}")


def test_missing_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "none.json"
    assert rejection(file) == f"cannot read {file}: no such file or directory"
    assert rejection(tmp_path) == f"cannot read {tmp_path}: is a directory"


@pytest.mark.parametrize(
    "options",
    [
        {"table": "events"},
        {"selects": ("count",)},
        {"filters": ("country = DE",)},
        {"groups": ("path",)},
        {"standard": ("pages",)},
    ],
)
def test_query_comes_from_a_file_or_from_options(tmp_path: Path, options: dict[str, Any]) -> None:
    assert rejection(written(tmp_path, {"query": COUNT_EVENTS}), **options) == (
        "cannot combine a file with --standard, --table, --select, --where, --where-any or "
        "--group-by"
    )


def test_query_needs_a_table_or_a_file() -> None:
    assert rejection(limit=5) == (
        "the query is missing: give a table with --table, types with --standard, or a file with a "
        "query in JSON"
    )


def test_standard_options_are_mapped() -> None:
    call = call_of(
        standard=("summary, pages", "devices"),
        filters=("country = DE", "path != 3"),
        any_filters=("os_name = iOS", "os_name = Android"),
        last_days=30,
        timezone="Europe/Berlin",
        granularity="weekly",
        compare="previous_year",
        limit=5,
    )
    assert call.path == "/v1/query/standard"
    assert msgspec.json.decode(call.body or b"") == {
        "types": ["summary", "pages", "devices"],
        "filters": [
            {"field": "country", "operator": "eq", "value": "DE"},
            {"field": "path", "operator": "ne", "value": "3"},
            {
                "or": [
                    {"field": "os_name", "operator": "eq", "value": "iOS"},
                    {"field": "os_name", "operator": "eq", "value": "Android"},
                ]
            },
        ],
        "lastDays": 30,
        "timezone": "Europe/Berlin",
        "granularity": "weekly",
        "compare": "previous_year",
        "limit": 5,
    }


def test_values_of_standard_filters_have_the_type_of_the_column_of_the_first_type() -> None:
    filters = composed(standard=("vitals",), filters=("metric_value > 3",))["filters"]
    assert filters == [{"field": "metric_value", "operator": "gt", "value": 3}]
    filters = composed(standard=("vitls",), filters=("is_bot = true",))["filters"]
    assert filters == [{"field": "is_bot", "operator": "eq", "value": True}]


def test_standard_query_gets_seven_days_too() -> None:
    assert composed(standard=("summary",)) == {
        "types": ["summary"],
        "filters": [],
        "startDate": "2025-12-25",
        "endDate": "2025-12-31",
    }


@pytest.mark.parametrize(
    "options", [{"table": "events"}, {"selects": ("count",)}, {"groups": ("path",)}]
)
def test_standard_query_has_neither_table_nor_selects_nor_groups(options: dict[str, Any]) -> None:
    assert rejection(standard=("pages",), **options) == (
        "cannot combine --standard with --table, --select or --group-by"
    )


def test_file_may_have_a_standard_query(tmp_path: Path) -> None:
    file = written(tmp_path, {"types": ["pages"], "limit": 3})
    assert call_of(file).path == "/v1/query/standard"
    assert composed(file, limit=4, last_days=2) == {"types": ["pages"], "limit": 4, "lastDays": 2}


def test_days_of_options_replace_those_of_a_file_given_in_the_other_way(tmp_path: Path) -> None:
    days = {"startDate": "2025-01-01", "endDate": "2025-01-31"}
    dates = written(tmp_path, {"query": COUNT_EVENTS, **days})
    assert composed(dates, last_days=2) == {"query": COUNT_EVENTS, "lastDays": 2}
    assert composed_to_save(dates, last_days=2) == {"query": COUNT_EVENTS, "lastDays": 2}
    moving = written(tmp_path, {"query": COUNT_EVENTS, "lastDays": 30})
    assert composed(moving, first="2025-01-01", last="2025-01-31") == {
        "query": COUNT_EVENTS,
        **days,
    }


def test_query_without_days_is_saved_with_days_that_move(tmp_path: Path) -> None:
    assert composed_to_save(table="events") == {"query": COUNT_EVENTS, "lastDays": 7}
    file = written(tmp_path, {"query": COUNT_EVENTS, "lastDays": 3})
    assert composed_to_save(file) == {"query": COUNT_EVENTS, "lastDays": 3}
    days = {"startDate": "2025-01-01", "endDate": "2025-01-31"}
    assert composed_to_save(table="events", first="2025-01-01", last="2025-01-31") == {
        "query": COUNT_EVENTS,
        **days,
    }


def test_standard_query_is_not_saved() -> None:
    with pytest.raises(OperatorError, match="cannot save a standard query; save a custom one"):
        composed_to_save(standard=("pages",))


def test_option_with_invalid_utf_8_is_rejected() -> None:
    assert rejection(table="events", filters=("path = \udcff",)) == "the query is not valid UTF-8"
    assert rejection(table="events", filters=("properties.a = \udcff",)) == (
        "the query is not valid UTF-8"
    )


def response(rows: list[dict[str, Any]], *, truncated: bool = False) -> QueryResponse:
    meta = {"rowCount": len(rows), "executionTime": 3.456, "limit": 9, "truncated": truncated}
    return QueryResponse(
        json.dumps({"success": True, "data": rows, "meta": meta}).encode(), is_truncated=False
    )


def with_others_and_totals() -> QueryResponse:
    sent = json.loads(response([{"date": "2026-01-01", "path": "/a", "n": 3}]).body)
    others = [{"date": "2026-01-01", "path": None, "n": 4}]
    body = json.dumps({**sent, "others": others, "totals": {"n": 7}})
    return QueryResponse(body.encode(), is_truncated=False)


TABLES = {
    "others and totals follow the rows": (
        with_others_and_totals(),
        [
            "date        path  n",
            "2026-01-01  /a    3",
            "",
            "Others",
            "date        path  n",
            "2026-01-01        4",
            "",
            "Totals",
            "n",
            "7",
            "",
            "1 row, 3.5 ms",
        ],
    ),
    "compared values have columns of their own": (
        response(
            [
                {"path": "/a", "views": 3, "previous": None},
                {"path": "/b", "views": 2, "previous": {"views": 5}},
            ]
        ),
        [
            "path  views  previous.views",
            "/a        3",
            "/b        2               5",
            "",
            "2 rows, 3.5 ms",
        ],
    ),
    "numbers stand at the right, null is empty": (
        response(
            [
                {"path": "/pricing", "views": 1200, "mean": 2.5},
                {"path": "", "views": 7, "mean": None},
                {"path": "/日本", "views": 12345678901, "mean": -10},
            ]
        ),
        [
            "path            views  mean",
            "/pricing         1200   2.5",
            "                    7",
            "/日本     12345678901   -10",
            "",
            "3 rows, 3.5 ms",
        ],
    ),
    "values of a property keep their kind": (
        response([{"properties.n": value, "n": 1} for value in (5, "5", True, None)]),
        [
            "properties.n  n",
            "           5  1",
            "5             1",
            "true          1",
            "              1",
            "",
            "4 rows, 3.5 ms",
        ],
    ),
    "what a terminal would obey is escaped": (
        response(
            [{"title": "a\x1b[31m\nb\u202e\u2028c", "n": 1}, {"title": "👩\u200d💻 é", "n": 2}]
        ),
        [
            "title" + " " * 22 + "n",
            "a\\x1b[31m\\nb\\u202e\\u2028c  1",
            "👩\u200d💻 é" + " " * 21 + "2",
            "",
            "2 rows, 3.5 ms",
        ],
    ),
    "more rows are told": (
        response([{"n": 1}], truncated=True),
        ["n", "1", "", "1 row, 3.5 ms, more rows exist"],
    ),
    "no rows": (response([]), ["0 rows, 3.5 ms"]),
}


@pytest.mark.parametrize(("result", "lines"), TABLES.values(), ids=list(TABLES))
def test_result_is_rendered_as_a_table(
    result: QueryResponse, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_result_table(result)
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"data":{}}', b"\xff"])
def test_unexpected_response_is_rejected(body: bytes) -> None:
    with pytest.raises(OperatorError) as caught:
        print_result_table(QueryResponse(body, is_truncated=False))
    assert str(caught.value) == "the response is not one of a Headrace service"


def test_truncated_csv_prints_a_notice(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    print_result_csv(QueryResponse(b"n\r\n1\r\n", is_truncated=True))
    assert capsysbinary.readouterr() == (b"n\r\n1\r\n", b"headrace: more rows exist\n")


def test_standard_result_has_a_table_for_each_type(capsys: pytest.CaptureFixture[str]) -> None:
    body = {
        "success": True,
        "data": {
            "summary": {"visitors": 12, "bounceRate": None, "previous": {"visitors": 9}},
            "pages": [{"path": "/a", "views": 3}, {"path": "/b\x1b", "views": 10}],
            "errors": [],
        },
        "meta": {"rowCount": 3, "executionTime": 3.456, "limit": 10, "truncated": True},
    }
    print_standard_tables(QueryResponse(json.dumps(body).encode(), is_truncated=False))
    assert capsys.readouterr().out.splitlines() == [
        "summary",
        "visitors  bounceRate  previous.visitors",
        "      12                              9",
        "",
        "pages",
        "path    views",
        "/a          3",
        "/b\\x1b     10",
        "",
        "errors",
        "no rows",
        "",
        "3 rows, 3.5 ms, more rows exist",
    ]
