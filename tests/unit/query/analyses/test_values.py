"""Values of a column: parameters, refusals with their full messages, and answers over chDB."""

import asyncio
from typing import Any
from urllib.parse import urlencode

import pytest

from headrace.base.clock import FixedClock, date_from_days
from headrace.base.errors import InvalidQuery
from headrace.model.catalog import EVENTS
from headrace.model.data_retention import Cutoffs
from headrace.query.result_values import QueryResult
from headrace.query.validate.parameters import read_parameters
from headrace.query.values.check import VALUES_PARAMETERS, check_values_request
from headrace.query.values.service import ValuesService
from testing.chdb import FreshStore
from testing.queries import WEBSITE, execution_over

NOW_MS = 1_767_790_800_000  # 2026-01-07T13:00Z
LIMIT = ": must be a whole number from 1"
DAYS = ": must be a whole number from 1 to 3652"


def query_string(**parameters: Any) -> bytes:
    """Return the parameters of a request; None takes one away."""
    sent = {"website_id": WEBSITE, "table": "events", "field": "path", **parameters}
    return urlencode({name: value for name, value in sent.items() if value is not None}).encode()


REFUSED = [
    pytest.param(
        {"serch": "x", "table": "x"},
        "Invalid parameter",
        ' "serch" (did you mean "search"?)',
        id="parameter",
    ),
    pytest.param(
        {"table": "event", "field": "x"},
        "Invalid table",
        ' "event" (did you mean "events"?)',
        id="table",
    ),
    pytest.param(
        {"table": None, "field": None},
        "Invalid table",
        ": one of events, sessions, profiles, errors, error_spans, performance, web_vitals_spans is"
        " required",
        id="no table",
    ),
    pytest.param(
        {"field": None, "search": "x" * 257},
        "Invalid column",
        ": the parameter field is required",
        id="no field",
    ),
    pytest.param(
        {"field": "pth", "search": "x" * 257},
        "Invalid column",
        ' "pth" for table "events" (did you mean "path"?)',
        id="field",
    ),
    pytest.param(
        {"search": "x" * 257, "limit": 0},
        "Invalid search",
        ": 257 characters given, maximum is 256",
        id="long search",
    ),
    pytest.param(
        {"field": "value", "search": "5"},
        "Invalid search",
        ': "value" has no texts',
        id="search in numbers",
    ),
    pytest.param({"limit": 0, "lastDays": 0}, "Invalid limit", LIMIT, id="no limit"),
    pytest.param({"limit": "1.5"}, "Invalid limit", LIMIT, id="half a limit"),
    pytest.param({"limit": "\N{ARABIC-INDIC DIGIT ONE}"}, "Invalid limit", LIMIT, id="digits"),
    pytest.param({"lastDays": 3653, "timezone": "x"}, "Invalid lastDays", DAYS, id="many days"),
    pytest.param({"lastDays": "-1"}, "Invalid lastDays", DAYS, id="negative days"),
    pytest.param(
        {"lastDays": 3, "endDate": "2026-01-01"},
        "Invalid startDate",
        ": lastDays is in the place of startDate and endDate",
        id="both ranges",
    ),
    pytest.param(
        {"endDate": "2026-01-01"},
        "Invalid startDate",
        ": a date such as 2026-01-31 is required",
        id="no start",
    ),
    pytest.param(
        {"timezone": "Berlin"},
        "Invalid timezone",
        ' "Berlin" (did you mean "Europe/Berlin"?)',
        id="timezone",
    ),
]


@pytest.mark.parametrize(("parameters", "cause", "detail"), REFUSED)
def test_invalid_parameters_are_refused(
    parameters: dict[str, Any], cause: str, detail: str
) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        check_values_request(
            read_parameters(query_string(**parameters), VALUES_PARAMETERS), WEBSITE, now_ms=NOW_MS
        )
    assert (refusal.value.code.value, str(refusal.value)) == (cause, f"{cause}{detail}")


@pytest.mark.parametrize(
    ("parameters", "first", "last"),
    [
        ({}, "2025-12-09", "2026-01-07"),
        ({"lastDays": 1}, "2026-01-07", "2026-01-07"),
        ({"lastDays": 1, "timezone": "Pacific/Kiritimati"}, "2026-01-08", "2026-01-08"),
        ({"startDate": "2025-01-01", "endDate": "2025-01-02"}, "2025-01-01", "2025-01-02"),
    ],
)
def test_range_is_the_last_days_unless_dates_are_given(
    parameters: dict[str, Any], first: str, last: str
) -> None:
    plan = check_values_request(
        read_parameters(query_string(**parameters), VALUES_PARAMETERS),
        WEBSITE,
        now_ms=NOW_MS,
        cutoffs=Cutoffs(events=5),
    )
    days = (plan.range.first_day, plan.range.last_day)
    assert tuple(date_from_days(day).isoformat() for day in days) == (first, last)
    assert (plan.limit, plan.cutoff_ms) == (100, 5)


def test_of_a_repeated_parameter_the_first_that_is_not_empty_counts() -> None:
    assert read_parameters(b"field=&field=a%20b&field=c&limit=", VALUES_PARAMETERS) == {
        "field": "a b"
    }


def test_limit_beyond_the_maximum_is_reduced() -> None:
    parameters = read_parameters(query_string(limit=5000), VALUES_PARAMETERS)
    assert check_values_request(parameters, WEBSITE, now_ms=NOW_MS).limit == 1000


PATHS = ("/b", "/B", "/a", "/a", "/É.x", "/éxx", "", "/old")


@pytest.fixture(scope="module")
def store(chdb_store_of_module: FreshStore) -> FreshStore:
    chdb_store_of_module.insert(
        EVENTS,
        [
            {
                "website_id": WEBSITE,
                "path": path,
                "time": NOW_MS - (40 * 86_400_000 if path == "/old" else 0),
                "properties": b'{"k":"x"}' if path == "/a" else b'{"k":7}',
            }
            for path in PATHS
        ],
    )
    return chdb_store_of_module


def values(store: FreshStore, **parameters: Any) -> QueryResult:
    service = ValuesService(execution_over(store, FixedClock(NOW_MS)))
    return asyncio.run(service.run(WEBSITE, query_string(**parameters)))


def test_most_frequent_values_come_first_then_by_value(store: FreshStore) -> None:
    result = values(store)
    assert result.names == ("value", "count")
    assert result.rows == [["/a", 2], ["/B", 1], ["/b", 1], ["/É.x", 1], ["/éxx", 1]]
    assert (result.limit, result.truncated) == (100, False)


def test_values_beyond_the_limit_are_left_out(store: FreshStore) -> None:
    result = values(store, limit=2)
    assert (result.rows, result.truncated) == ([["/a", 2], ["/B", 1]], True)


def test_a_result_that_ends_at_the_limit_is_not_truncated(store: FreshStore) -> None:
    assert len(values(store, limit=5).rows) == 5
    assert not values(store, limit=5).truncated
    assert values(store, limit=4).truncated


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("B", ["/B", "/b"]),
        ("é", ["/É.x", "/éxx"]),
        (".X", ["/É.x"]),
        ("\\", []),
        ("(?i)", []),
        ("/", ["/a", "/B", "/b", "/É.x", "/éxx"]),
    ],
)
def test_search_finds_a_part_in_any_case_and_literally(
    store: FreshStore, search: str, found: list[str]
) -> None:
    assert [value for value, _ in values(store, search=search).rows] == found


def test_values_of_a_property_keep_their_types(store: FreshStore) -> None:
    assert values(store, field="properties.k").rows == [[7, 5], ["x", 2]]
    assert values(store, field="properties.k", search="X").rows == [["x", 2]]
