"""The plan of a query: its defaults, and what each of its parts becomes."""

from datetime import date
from typing import Any

import msgspec
import pytest

from headrace.base.clock import days_since_epoch
from headrace.model.catalog import (
    ANY_COLUMN_AGGREGATES,
    EVENTS,
    NUMBER_AGGREGATES,
    PERFORMANCE,
    SESSIONS,
    Aggregate,
    Column,
    Kind,
    Operator,
    table_names,
)
from headrace.model.plan import (
    Conjunction,
    DateRange,
    Direction,
    Granularity,
    PlannedFilter,
    PlannedGroup,
    PlannedHaving,
    PlannedOrder,
    PlannedSelect,
    QueryPlan,
)
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query
from testing.queries import (
    COUNT,
    WEBSITE,
    filtering,
    in_groups,
    plan_of,
    query_body,
    select,
    selecting,
    where,
)

PATH = where("path", "eq", "/")


JANUARY = DateRange(
    first_day=20_454,
    last_day=20_484,
    start_ms=1_767_225_600_000,
    end_ms=1_769_904_000_000,
    offsets=((1_767_225_600, 0),),
    timezone="UTC",
)


def test_minimal_query_has_the_defaults() -> None:
    body = {
        "query": {"table": "events", "selects": [{"field": "*", "aggregate": "count"}]},
        "startDate": "2026-01-01",
        "endDate": "2026-01-31",
    }
    assert plan_of(body) == QueryPlan(
        website_id=WEBSITE,
        table=EVENTS,
        selects=(PlannedSelect(None, Aggregate.COUNT, "count_all"),),
        filters=(),
        group_by=(),
        range=JANUARY,
        granularity=None,
        order_by=(),
        limit=1000,
        offset=0,
        fill=False,
    )


def test_null_in_optional_fields_means_absent() -> None:
    absent = query_body()
    nulls = dict.fromkeys(("timezone", "granularity", "limit", "offset", "fill", "orderBy"), None)
    query = {**absent["query"], "filters": None, "groupBy": None}
    query["selects"] = [{**COUNT, "alias": "n"}]
    assert plan_of({**absent, **nulls, "query": query}) == plan_of(absent)


def test_full_query_is_planned_completely() -> None:
    path, duration = SESSIONS.column("entry_path"), SESSIONS.column("duration")
    assert path is not None
    assert duration is not None
    body = query_body(
        select("duration", "p95", "slow"),
        table="sessions",
        filters=[where("duration", "gte", "1.5")],
        group_by=["entry_path"],
        granularity="hourly",
        orderBy=[{"field": "slow", "direction": "desc"}, {"field": "date"}],
        limit=7,
        offset=1_000_000,
        fill=True,
    )
    assert plan_of(body) == QueryPlan(
        website_id=WEBSITE,
        table=SESSIONS,
        selects=(PlannedSelect(duration, Aggregate.P95, "slow"),),
        filters=(PlannedFilter(duration, Operator.GTE, (1.5,)),),
        group_by=(path,),
        range=JANUARY,
        granularity=Granularity.HOURLY,
        order_by=(PlannedOrder("slow", Direction.DESC), PlannedOrder("date", Direction.ASC)),
        limit=7,
        offset=1_000_000,
        fill=True,
    )


@pytest.mark.parametrize("name", list(table_names()))
def test_every_table_can_be_queried_by_all_its_names(name: str) -> None:
    table = plan_of(query_body(table=name)).table
    assert name in (table.name, *table.aliases)


@pytest.mark.parametrize(
    ("limit", "planned"), [(None, 1000), (1, 1), (5.0, 5), (10_000, 10_000), (10**30, 10_000)]
)
def test_limit_over_the_maximum_is_clamped(limit: float | None, planned: int) -> None:
    assert plan_of(query_body(limit=limit)).limit == planned


@pytest.mark.parametrize(
    ("field", "aggregate", "alias"),
    [
        ("*", "count", "count_all"),
        ("path", "uniq", "uniq_path"),
        ("properties.plan", "count", "count_properties_plan"),
        ("properties.a.b c", "sum", "sum_properties_a_b c"),
    ],
)
def test_default_alias_is_aggregate_and_field(field: str, aggregate: str, alias: str) -> None:
    assert plan_of(selecting(field, aggregate)).selects[0].alias == alias


@pytest.mark.parametrize("alias", ["a" * 64, "🦆" * 64, " ", "date", "c0", '`"\\\n'])
def test_alias_is_any_text_up_to_64_characters(alias: str) -> None:
    assert plan_of(selecting("*", "count", alias)).selects[0].alias == alias


def test_property_is_a_column_of_any_type() -> None:
    columns = plan_of(query_body(group_by=["properties.a.b", "properties. "])).group_by
    assert [(column.name, column.kind) for column in columns] == [
        ("properties.a.b", Kind.JSON),
        ("properties. ", Kind.JSON),
    ]


VALUES = [
    pytest.param("path", "eq", "", ("",), id="empty text"),
    pytest.param("path", "in", ["/", "5"], ("/", "5"), id="texts"),
    pytest.param("path", "matches", "a" * 256, ("a" * 256,), id="long pattern"),
    pytest.param("is_bot", "is_set", None, (), id="no value"),
    pytest.param("value", "eq", 5, (5.0,), id="number"),
    pytest.param("value", "in", ["5", "-.5e1", "+7.", 1e308], (5.0, -5.0, 7.0, 1e308), id="texts"),
    pytest.param("is_bot", "in", [True, False], (True, False), id="booleans"),
    pytest.param("time", "eq", 1_767_225_600_000.9, (1_767_225_600_000,), id="epoch"),
    pytest.param("time", "lt", 253_402_300_799_999, (253_402_300_799_999,), id="last moment"),
    pytest.param("time", "eq", "2026-01-05", (1_767_567_600_000,), id="midnight in Berlin"),
    pytest.param("time", "eq", "2026-01-05T00:00", (1_767_567_600_000,), id="without seconds"),
    pytest.param("time", "eq", "2026-01-05 01:00:00Z", (1_767_574_800_000,), id="UTC"),
    pytest.param("time", "eq", "2026-01-05t01:00:00.1239z", (1_767_574_800_123,), id="cut"),
    pytest.param("time", "eq", "2026-01-05T01:00:00,5-0330", (1_767_587_400_500,), id="offset"),
    pytest.param("time", "eq", "1969-12-31T23:59:59.9999Z", (-1,), id="before 1970"),
    pytest.param("time", "eq", "2026-03-29T02:30:00", (1_774_747_800_000,), id="skipped time"),
    pytest.param("time", "eq", "2025-10-26T02:30:00", (1_761_438_600_000,), id="first of two"),
    pytest.param("properties.k", "in", ["5", 5, 5.5, True], ("5", 5, 5.5, True), id="property"),
    pytest.param("properties.k", "eq", 2**70, (2**70,), id="large number of a property"),
]


@pytest.mark.parametrize(("field", "operator", "value", "planned"), VALUES)
def test_value_has_the_type_of_its_column(
    field: str, operator: str, value: Any, planned: tuple[Any, ...]
) -> None:
    (found,) = plan_of(filtering(field, operator, value, timezone="Europe/Berlin")).filters
    assert isinstance(found, PlannedFilter)
    assert (found.values, list(map(type, found.values))) == (planned, list(map(type, planned)))


def test_group_is_planned_with_its_items_in_order() -> None:
    filters = [
        {"or": [PATH, {"and": [where("time", "gt", "2026-01-05"), PATH]}]},
        in_groups(PATH, 3),
    ]
    columns = {name: EVENTS.column(name) for name in ("path", "time")}
    assert columns["path"] is not None
    assert columns["time"] is not None
    path = PlannedFilter(columns["path"], Operator.EQ, ("/",))
    time = PlannedFilter(columns["time"], Operator.GT, (1_767_567_600_000,))
    alone: PlannedFilter | PlannedGroup = path
    for _ in range(3):
        alone = PlannedGroup(Conjunction.OR, (alone,))
    assert plan_of(query_body(filters=filters, timezone="Europe/Berlin")).filters == (
        PlannedGroup(Conjunction.OR, (path, PlannedGroup(Conjunction.AND, (time, path)))),
        alone,
    )


def measures(columns: tuple[Column, ...]) -> list[str]:
    return [column.name for column in columns if column.aggregatable]


@pytest.mark.parametrize("name", [*measures(EVENTS.columns), "properties.k"])
@pytest.mark.parametrize("aggregate", [*ANY_COLUMN_AGGREGATES, *NUMBER_AGGREGATES])
def test_every_measure_takes_every_aggregate_of_numbers(name: str, aggregate: Aggregate) -> None:
    assert plan_of(selecting(name, aggregate.value)).selects[0].aggregate is aggregate


@pytest.mark.parametrize("column", PERFORMANCE.columns, ids=lambda column: column.name)
def test_every_column_can_be_grouped_by_counted_and_made_unique(column: Column) -> None:
    body = query_body(
        select(column.name, "count"),
        select(column.name, "uniq"),
        table="performance",
        group_by=[column.name],
    )
    assert plan_of(body).group_by == (column,)


def test_last_days_end_today_in_the_timezone_of_the_query() -> None:
    body = query_body(startDate=None, endDate=None, lastDays=7.0, timezone="Pacific/Auckland")
    request = decode_query(msgspec.json.encode(body))
    plan = check_query(request, WEBSITE, now_ms=1_767_225_540_000)  # 2025-12-31T23:59:00Z
    assert plan.range.last_day == days_since_epoch(date(2026, 1, 1))
    assert plan.range.last_day - plan.range.first_day == 6


def test_whole_numbers_may_have_a_fraction_of_zero() -> None:
    plan = plan_of(query_body(limit=10.0, offset=20.0))
    assert (plan.limit, plan.offset) == (10, 20)


def test_having_is_planned_by_the_index_of_its_select() -> None:
    body = query_body(select("path", "uniq"), COUNT, having=[where("n", "gte", 3)])
    assert plan_of(body).having == (PlannedHaving(1, Operator.GTE, 3.0),)
    assert plan_of(query_body(having=[])).having == ()


@pytest.mark.parametrize(
    ("days", "compared"),
    [
        (("2024-02-29", "2024-02-29"), (date(2023, 2, 28), date(2023, 2, 28))),
        (("2024-02-28", "2024-03-01"), (date(2023, 2, 28), date(2023, 3, 1))),
        (("2025-02-28", "2025-03-01"), (date(2024, 2, 28), date(2024, 3, 1))),
    ],
    ids=["a leap day", "days around one", "days around none"],
)
def test_the_year_before_a_leap_day_has_28_february(
    days: tuple[str, str], compared: tuple[date, date]
) -> None:
    start, end = days
    plan = plan_of(query_body(startDate=start, endDate=end, compare="previous_year"))
    assert plan.compare is not None
    assert (plan.compare.first_day, plan.compare.last_day) == tuple(map(days_since_epoch, compared))
