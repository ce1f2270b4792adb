"""Results with a compared range and with totals over a real store, shards included."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.model.catalog import EVENTS
from testing.queries import COUNT, WEBSITE, query_body, run_query, select, where
from testing.tables import EACH_QUERIED_STORE, Tables, made_tables

DAY_MS = 86_400_000
JANUARY_5 = 1_767_571_200_000
VISITORS = select("anonymous_id", "uniq", "visitors")
NEXT_DAYS = {"startDate": "2026-01-06", "endDate": "2026-01-07"}
VIEWS = [("/a", "u1", 0), ("/a", "u2", 0), ("/b", "u1", 1), ("/a", "u1", 1), ("/b", "u1", 2)]
"""The path, the visitor and the day after 5 January of each event."""


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def views(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """A store with the events of VIEWS."""
    with made_tables(request, request.param) as store:
        rows = [
            {
                "id": number.to_bytes(16, "big"),
                "website_id": WEBSITE,
                "event_name": "screen_view",
                "time": JANUARY_5 + day * DAY_MS,
                "path": path,
                "anonymous_id": visitor,
                "session_id": f"{visitor} {day}",
            }
            for number, (path, visitor, day) in enumerate(VIEWS)
        ]
        store.insert(EVENTS, rows)
        yield store


def found(views: Tables, *selects: Any, **parts: Any) -> tuple[list[Any], Any]:
    """Return the rows, compared values last, and the totals."""
    result = run_query(views, {**query_body(*selects, **parts), "totals": True})
    return [list(row) for row in result.rows], result.totals


def test_groups_are_compared_with_the_period_before(views: Tables) -> None:
    assert found(
        views, COUNT, VISITORS, group_by=["path"], compare="previous_period", **NEXT_DAYS
    ) == (
        [["/b", 2, 1, None, None], ["/a", 1, 1, 2, 2]],
        {"n": 3, "visitors": 1, "previous": {"n": 2, "visitors": 2}},
    )


def test_overlapping_ranges_are_compared_day_by_day(views: Tables) -> None:
    days = {"startDate": "2026-01-05", "endDate": "2026-01-06"}
    assert found(views, COUNT, granularity="daily", compare=days, **NEXT_DAYS) == (
        [["2026-01-06", 2, 2], ["2026-01-07", 1, 2]],
        {"n": 3, "previous": {"n": 4}},
    )


@pytest.mark.parametrize(
    ("table", "expected"),
    [("sessions", (2, 2)), ("profiles", (1, 2))],
    ids=["sessions", "profiles"],
)
def test_derived_tables_are_compared(views: Tables, table: str, expected: tuple[int, int]) -> None:
    rows, totals = found(views, COUNT, table=table, compare="previous_period", **NEXT_DAYS)
    assert rows == [[*expected]]
    assert totals == {"n": expected[0], "previous": {"n": expected[1]}}


def test_totals_of_no_rows_are_those_of_no_rows(views: Tables) -> None:
    nothing = [where("path", "eq", "/nowhere")]
    average = select("value", "avg", "mean")
    assert found(views, COUNT, average, group_by=["path"], filters=nothing) == (
        [],
        {"n": 0, "mean": None},
    )


def test_totals_are_those_before_having_and_pages(views: Tables) -> None:
    having = [where("n", "gt", 100)]
    assert found(views, COUNT, group_by=["path"], having=having, offset=3) == ([], {"n": 5})
    assert found(views, COUNT, having=having, offset=3) == ([], {"n": 5})


BY_DAY: dict[str, Any] = {"group_by": ["path"], "granularity": "daily", "endDate": "2026-01-07"}


def test_totals_beside_top_groups_are_those_of_all_groups(views: Tables) -> None:
    assert found(views, COUNT, top=1, **BY_DAY) == (
        [["2026-01-05", "/a", 2], ["2026-01-06", "/a", 1]],
        {"n": 5},
    )


def test_others_are_in_the_order_of_days_whatever_that_of_the_rows_is(views: Tables) -> None:
    latest = [{"field": "date", "direction": "desc"}]
    body = query_body(COUNT, top=1, others=True, orderBy=latest, **BY_DAY)
    result = run_query(views, body)
    assert [list(row) for row in result.rows] == [["2026-01-06", "/a", 1], ["2026-01-05", "/a", 2]]
    assert result.others == [
        {"date": "2026-01-06", "path": None, "n": 1},
        {"date": "2026-01-07", "path": None, "n": 1},
    ]


def test_others_of_the_compared_range_alone_are_no_rows(views: Tables) -> None:
    days = {**BY_DAY, "startDate": "2026-01-07"}
    body = query_body(COUNT, top=1, others=True, compare="previous_period", **days)
    result = run_query(views, body)
    assert [list(row) for row in result.rows] == [["2026-01-07", "/b", 1, 1]]
    assert result.others == []


def test_each_range_has_the_offsets_of_its_own_days(tables: Tables) -> None:
    """Half past midnight in Berlin is 23:30 of the day before in January, 22:30 in July."""
    january, july = 1_767_655_800_000, 1_751_754_600_000
    tables.insert(
        EVENTS,
        [
            {"id": bytes([number]) * 16, "website_id": WEBSITE, "event_name": "x", "time": time_ms}
            for number, time_ms in enumerate((january, july))
        ],
    )
    result = run_query(
        tables,
        query_body(
            COUNT,
            granularity="daily",
            timezone="Europe/Berlin",
            startDate="2026-01-06",
            endDate="2026-01-07",
            compare={"startDate": "2025-07-06", "endDate": "2025-07-07"},
        ),
    )
    assert [list(row) for row in result.rows] == [["2026-01-06", 1, 1]]


@pytest.mark.parametrize(
    ("day", "before", "expected"),
    [
        ("2010-11-06", "2010-11-07", (2, 1)),
        ("2010-11-06", "2010-11-05", (2, 0)),
        ("2010-11-05", "2010-11-06", (0, 2)),
    ],
    ids=["both ranges with a gap", "the range with a gap", "the compared range with a gap"],
)
def test_profiles_are_compared_where_a_range_has_a_gap(
    tables: Tables, day: str, before: str, expected: tuple[int, int]
) -> None:
    """St John's turned its clocks back from 00:01 on 7 November 2010 to 23:01 of the day before."""
    noon_of_the_6th, start_of_the_7th, the_6th_again = (
        1_289_053_800_000,
        1_289_097_030_000,
        1_289_099_100_000,
    )
    times = {"a": noon_of_the_6th, "b": the_6th_again, "c": start_of_the_7th}
    tables.insert(
        EVENTS,
        [
            {
                "id": bytes([number]) * 16,
                "website_id": WEBSITE,
                "event_name": "x",
                "time": time_ms,
                "anonymous_id": visitor,
            }
            for number, (visitor, time_ms) in enumerate(times.items())
        ],
    )
    found_rows, _ = found(
        tables,
        COUNT,
        table="profiles",
        timezone="America/St_Johns",
        startDate=day,
        endDate=day,
        compare={"startDate": before, "endDate": before},
    )
    assert found_rows == [[*expected]]


def test_offset_leaves_out_the_one_row_without_groups_and_not_its_totals(views: Tables) -> None:
    assert found(views, COUNT, offset=1, **NEXT_DAYS) == ([], {"n": 3})
    assert found(views, COUNT, offset=0, **NEXT_DAYS) == ([[3]], {"n": 3})


def test_day_that_the_compared_range_alone_divides_counts_by_its_events(
    tables_of_module: Tables,
) -> None:
    """In Berlin 3 and 4 January are from 23:00 UTC of the 2nd to 23:00 UTC of the 4th."""
    tables_of_module.empty()
    hours = (-50, -49, -36, -2, -1, -1, 132)  # from midnight UTC of 5 January
    tables_of_module.insert(
        EVENTS,
        [
            {
                "website_id": WEBSITE,
                "event_name": "click",
                "time": JANUARY_5 + hour * 3_600_000,
                "anonymous_id": f"u{number}",
            }
            for number, hour in enumerate(hours)
        ],
    )
    days = {"startDate": "2026-01-10", "endDate": "2026-01-11", "timezone": "Europe/Berlin"}
    compared = {"startDate": "2026-01-03", "endDate": "2026-01-04"}
    assert found(tables_of_module, COUNT, VISITORS, compare=compared, **days) == (
        [[1, 1, 3, 3]],
        {"n": 1, "visitors": 1, "previous": {"n": 3, "visitors": 3}},
    )
