"""A filter on `is_bot` in `first` or `return` of a retention query concerns that one alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from testing.tables import EACH_QUERIED_STORE, Tables, made_tables
from tests.oracle import Stored
from tests.oracle.retention import evaluate_retention
from tests.oracle.rows import Row
from tests.oracle.stored import event_row
from tests.property.queries.test_paths_in_process import NOW_MS, retention_rows
from tests.property.queries.test_results_in_process import insert

FIRST_MS = 1_761_300_000_000  # 2025-10-24
DAYS = {"startDate": "2025-10-24", "endDate": "2025-10-24", "granularity": "daily", "periods": 1}
ANY: dict[str, Any] = {"filters": []}
BOT_OR_NOT = {"filters": [{"field": "is_bot", "operator": "in", "value": [True, False]}]}
BOT = {"filters": [{"field": "is_bot", "operator": "eq", "value": True}]}


def _event(arrival: int, visitor: str, *, is_bot: bool) -> Row:
    item = {"name": "a", "timestamp": FIRST_MS + arrival, "anonymousId": visitor}
    return event_row(item, arrival=arrival, visitor={"is_bot": is_bot})


@pytest.fixture(scope="module")
def stored() -> Stored:
    """Three visitors with two events each: of a visitor, of a bot, and of each in this order."""
    kinds = {"visitor": (False, False), "bot": (True, True), "both": (False, True)}
    flags = [(visitor, is_bot) for visitor, each in kinds.items() for is_bot in each]
    return Stored(
        events=[
            _event(arrival, visitor, is_bot=is_bot)
            for arrival, (visitor, is_bot) in enumerate(flags)
        ]
    )


@pytest.fixture(scope="module", params=EACH_QUERIED_STORE)
def tables(request: pytest.FixtureRequest, stored: Stored) -> Iterator[Tables]:
    with made_tables(request, request.param) as made:
        insert(made, stored)
        yield made


@pytest.mark.parametrize(
    ("first", "returning", "counts"),
    [
        pytest.param(ANY, ANY, (2, 1), id="neither"),
        pytest.param(BOT_OR_NOT, ANY, (3, 1), id="first"),
        pytest.param(ANY, BOT_OR_NOT, (2, 2), id="return"),
        pytest.param(BOT_OR_NOT, BOT_OR_NOT, (3, 3), id="both"),
        pytest.param(BOT, ANY, (2, 0), id="bots first"),
        pytest.param(ANY, BOT, (2, 1), id="bots that return"),
    ],
)
def test_rule_on_bots_is_lifted_for_the_events_whose_filters_name_it(
    tables: Tables,
    stored: Stored,
    first: dict[str, Any],
    returning: dict[str, Any],
    counts: tuple[int, int],
) -> None:
    body = {"first": first, "return": returning, **DAYS}

    rows = retention_rows(tables, body)

    size, returned = counts
    assert rows == [{"date": "2025-10-24", "size": size, "returned": [returned]}]
    assert rows == evaluate_retention(body, stored, NOW_MS)
