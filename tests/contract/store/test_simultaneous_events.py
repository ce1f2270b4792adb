"""Of events in one millisecond, funnels and retention take those first that arrived first."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from testing.tables import EACH_QUERIED_STORE, Tables, made_tables
from tests.oracle import Stored
from tests.oracle.funnel import evaluate_funnel
from tests.oracle.retention import evaluate_retention
from tests.oracle.rows import Row
from tests.oracle.stored import event_row
from tests.property.queries.test_paths_in_process import NOW_MS, funnel_rows, retention_rows
from tests.property.queries.test_results_in_process import insert

TIME_MS = 1_761_300_000_000  # 2025-10-24
DAYS: dict[str, Any] = {"startDate": "2025-10-24", "endDate": "2025-10-25"}
ONE_DAY: dict[str, Any] = {"granularity": "daily", "periods": 1, **DAYS}


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def made(request: pytest.FixtureRequest) -> Iterator[Tables]:
    with made_tables(request, request.param) as tables:
        yield tables


@pytest.fixture
def tables(made: Tables) -> Iterator[Tables]:
    yield made
    made.empty()


def simultaneous(*named: tuple[str, str]) -> Stored:
    """Return events of one visitor and one millisecond, by arrival, with their names and paths."""
    return Stored(events=[_event(number, *one) for number, one in enumerate(named)])


def _event(arrival: int, name: str, path: str) -> Row:
    item = {"name": name, "path": path, "timestamp": TIME_MS, "anonymousId": "u1"}
    return event_row(item, arrival=arrival, visitor={"is_bot": False})


def names(*values: str) -> dict[str, Any]:
    return {"filters": [{"field": "event_name", "operator": "in", "value": list(values)}]}


@pytest.mark.parametrize(
    ("arrived", "counts"),
    [
        ("ab", [1, 1]),
        ("ba", [1, 0]),
        ("bab", [1, 1]),
        ("cb", [1, 1]),
        ("bc", [1, 0]),
        ("cc", [1, 1]),
        ("c", [1, 0]),
    ],
)
def test_funnel_takes_a_later_step_only_from_what_arrived_later(
    tables: Tables, arrived: str, counts: list[int]
) -> None:
    stored = simultaneous(*((name, "/") for name in arrived))
    insert(tables, stored)
    body = {"steps": [names("a", "c"), names("b", "c")], **DAYS}

    rows = funnel_rows(tables, body)

    assert [row["count"] for row in rows] == counts
    assert rows == evaluate_funnel(body, stored)


@pytest.mark.parametrize("arrived", [("/2", "/1"), ("/1", "/2"), ("/3", "/1", "/2")])
@pytest.mark.parametrize("last", ["a", "b"])
def test_group_of_a_funnel_is_that_of_the_first_event_that_arrived(
    tables: Tables, arrived: Sequence[str], last: str
) -> None:
    stored = simultaneous(("b", "/0"), *(("a", path) for path in arrived), (last, "/0"))
    insert(tables, stored)
    body = {"steps": [names("a"), names("b")], "groupBy": "path", **DAYS}

    rows = funnel_rows(tables, body)

    assert [row["path"] for row in rows] == [arrived[0]] * 2
    assert rows == evaluate_funnel(body, stored)


@pytest.mark.parametrize(
    ("arrived", "returned"),
    [("ab", 1), ("ba", 0), ("bab", 1), ("bbaa", 0), ("cb", 1), ("bc", 0), ("cc", 1), ("c", 0)],
)
def test_return_is_what_arrived_after_the_first_event(
    tables: Tables, arrived: str, returned: int
) -> None:
    stored = simultaneous(*((name, "/") for name in arrived))
    insert(tables, stored)
    body = {"first": names("a", "c"), "return": names("b", "c"), **ONE_DAY}

    rows = retention_rows(tables, body)

    assert rows == [{"date": "2025-10-24", "size": 1, "returned": [returned]}]
    assert rows == evaluate_retention(body, stored, NOW_MS)


@pytest.mark.parametrize(("arrived", "returned"), [("a", 0), ("aa", 1), ("aaa", 1)])
def test_with_the_same_filters_all_but_one_event_are_returns(
    tables: Tables, arrived: str, returned: int
) -> None:
    stored = simultaneous(*((name, "/") for name in arrived))
    insert(tables, stored)
    body = {"first": names("a"), "return": names("a"), **ONE_DAY}

    rows = retention_rows(tables, body)

    assert rows == [{"date": "2025-10-24", "size": 1, "returned": [returned]}]
    assert rows == evaluate_retention(body, stored, NOW_MS)
