"""What is compared: for each area how a query is drawn, run in process, and evaluated."""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.base.clock import FixedClock
from headrace.base.errors import InvalidQuery
from headrace.http.routes.formats.query_results import write_json
from headrace.model.data_retention import NO_CUTOFFS, Cutoffs
from headrace.query.values.service import ValuesService
from testing.queries import WEBSITE, execution_over
from testing.tables import Tables
from tests.oracle import Stored
from tests.oracle.check import QueryRejected
from tests.oracle.columns import is_list
from tests.oracle.funnel import evaluate_funnel
from tests.oracle.retention import evaluate_retention
from tests.oracle.values import evaluate_values
from tests.property.generators.chances import SeededRandom
from tests.property.generators.paths import draw_funnel, draw_path_data, draw_retention
from tests.property.generators.query_cases import Body, draw_arbitrary_body
from tests.property.generators.query_data import draw_data_set
from tests.property.generators.query_parts import DRAWN_PARTS, GROUPS_OF_FILTERS, draw_body_with
from tests.property.generators.rollup_cases import draw_dashboard_body
from tests.property.generators.standard import draw_standard_query
from tests.property.generators.values import draw_values_request
from tests.property.queries import test_paths_in_process as paths
from tests.property.queries import test_results_in_process as custom
from tests.property.queries import test_standard_in_process as standard

_LAST_DAYS: Final = (1, 2, 3, 9, 14, 31, 37, 60, 365, 3652)


class Case(NamedTuple):
    """A query, the time at which it runs, and the cutoffs of the rows that remain for it."""

    body: Body
    now_ms: int
    cutoffs: Cutoffs


class Area(NamedTuple):
    """How the queries of one kind are drawn, run and evaluated.

    `got` and `expected` return a text for a refusal, its code; the oracle gets the rows that
    remain. `count_rows` takes any other result.
    """

    name: str
    draw: Callable[[SeededRandom, Stored], Case]
    got: Callable[[Tables, Case], Any]
    expected: Callable[[Stored, Case], Any]
    count_rows: Callable[[Any], int]


class DataKind(NamedTuple):
    """A kind of data set, and the areas that it is for with their queries over one data set."""

    name: str
    draw: Callable[[SeededRandom], Stored]
    areas: Sequence[tuple[Area, int]]


def _draw_case(
    body: Body, random_source: SeededRandom, stored: Stored, now_ms: int | None = None
) -> Case:
    """Draw the time and the cutoffs of a query; one in ten has the last days as its range."""
    if now_ms is None:
        now_ms = standard.draw_time_near(random_source, stored)
    if body.keys() >= {"startDate", "endDate"} and random_source.has_probability(0.1):
        body = {key: body[key] for key in body if key not in ("startDate", "endDate")}
        body["lastDays"] = random_source.choice(_LAST_DAYS)
    has_cutoffs = random_source.has_probability(0.3)
    cutoffs = custom.draw_cutoffs(random_source, stored) if has_cutoffs else NO_CUTOFFS
    return Case(body, now_ms, cutoffs)


def _dated(case: Case) -> Body:
    """Return the body with the dates that the last days are at its time; a refused one as it is."""
    body = case.body
    if "lastDays" not in body or "startDate" in body or "endDate" in body:
        return body
    try:
        zone = ZoneInfo(body.get("timezone") or "UTC")
    except (TypeError, ValueError, ZoneInfoNotFoundError):
        return body
    last = datetime.fromtimestamp(case.now_ms / 1000, UTC).astimezone(zone).date()
    first = last - timedelta(days=body["lastDays"] - 1)
    rest = {key: body[key] for key in body if key != "lastDays"}
    return {**rest, "startDate": str(first), "endDate": str(last)}


# Queries of SPEC.md and its additions.


def _draw_custom(random_source: SeededRandom, stored: Stored) -> Case:
    """Draw the shortest of a few bodies: an engine takes the longer the longer a query is.

    Planning it takes nine tenths of the time of a pair. Long ones come up as well.
    """
    count = random_source.choice((1, 3, 6))
    bodies = [_draw_body(random_source) for _ in range(count)]
    return _draw_case(min(bodies, key=lambda body: len(str(body))), random_source, stored)


def _draw_body(random_source: SeededRandom) -> Body:
    """Draw any body, or one that has a part for certain."""
    if random_source.has_probability(0.4):
        return draw_arbitrary_body(random_source)
    part = random_source.choice(DRAWN_PARTS)
    body = draw_body_with(random_source, part)
    if part != GROUPS_OF_FILTERS and random_source.has_probability(0.5):
        body["query"].pop("filters", None)  # so that groups are many, and others than the top ones
    return body


def _draw_daily(random_source: SeededRandom, stored: Stored) -> Case:
    return _draw_case(draw_dashboard_body(random_source), random_source, stored)


def _got_custom(tables: Tables, case: Case) -> Any:
    return custom.got_of(tables, case.body, case.cutoffs, case.now_ms)


def _expected_custom(stored: Stored, case: Case) -> Any:
    return custom.expected_of(_dated(case), stored)


def _count_custom(result: Any) -> int:
    return len(result[0]) + len(result[4] or [])


# Standard queries.


def _draw_standard(random_source: SeededRandom, stored: Stored) -> Case:
    return _draw_case(draw_standard_query(random_source), random_source, stored)


def _got_standard(tables: Tables, case: Case) -> Any:
    return standard.got_of(tables, case.body, case.now_ms, case.cutoffs)


def _expected_standard(stored: Stored, case: Case) -> Any:
    return standard.by_oracle(stored, _dated(case), case.now_ms)


def _count_standard(result: Any) -> int:
    return sum(len(one) if is_list(one) else 1 for one in result.values())


# Values of a column.


def _draw_values(random_source: SeededRandom, stored: Stored) -> Case:
    return _draw_case(draw_values_request(random_source), random_source, stored)


def _got_values(tables: Tables, case: Case) -> Any:
    service = ValuesService(execution_over(tables, FixedClock(case.now_ms), case.cutoffs))
    try:
        result = asyncio.run(service.run(WEBSITE, urlencode(case.body).encode()))
    except InvalidQuery as refusal:
        return refusal.code.name
    return [json.loads(write_json(result, request_id="").body)["data"], result.truncated]


def _expected_values(stored: Stored, case: Case) -> Any:
    try:
        return [*evaluate_values(case.body, stored, case.now_ms)]
    except QueryRejected as refusal:
        return refusal.code


def _count_first(result: Any) -> int:
    return len(result[0])


# Funnels and retention.


def _draw_funnel(random_source: SeededRandom, stored: Stored) -> Case:
    return _draw_case(draw_funnel(random_source), random_source, stored, paths.NOW_MS)


def _draw_retention(random_source: SeededRandom, stored: Stored) -> Case:
    return _draw_case(draw_retention(random_source), random_source, stored, paths.NOW_MS)


def _got_funnel(tables: Tables, case: Case) -> Any:
    return paths.funnel_rows(tables, case.body, case.cutoffs)


def _got_retention(tables: Tables, case: Case) -> Any:
    return paths.retention_rows(tables, case.body, case.cutoffs)


def _expected_funnel(stored: Stored, case: Case) -> Any:
    return evaluate_funnel(_dated(case), stored)


def _expected_retention(stored: Stored, case: Case) -> Any:
    return evaluate_retention(_dated(case), stored, case.now_ms)


CUSTOM: Final = Area("custom", _draw_custom, _got_custom, _expected_custom, _count_custom)
DAILY: Final = Area("daily rows", _draw_daily, _got_custom, _expected_custom, _count_custom)
STANDARD: Final = Area(
    "standard", _draw_standard, _got_standard, _expected_standard, _count_standard
)
VALUES: Final = Area("values", _draw_values, _got_values, _expected_values, _count_first)
FUNNEL: Final = Area("funnel", _draw_funnel, _got_funnel, _expected_funnel, len)
RETENTION: Final = Area("retention", _draw_retention, _got_retention, _expected_retention, len)


def _draw_rows(random_source: SeededRandom) -> Stored:
    return custom.stored_of(draw_data_set(random_source))


DATA_KINDS: Final[Sequence[DataKind]] = (
    DataKind("rows", _draw_rows, ((CUSTOM, 70), (DAILY, 10), (STANDARD, 8), (VALUES, 8))),
    DataKind("paths", draw_path_data, ((FUNNEL, 16), (RETENTION, 8))),
)
