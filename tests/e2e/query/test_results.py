"""Aggregates, groups, order and pages of results, each over a few ingested rows."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testing.service import Json, Row, Service, bearer
from tests.e2e.query.queries import COUNT, alike, body, event, query, rows_of, select, send, where

RunQuery = Callable[..., list[Row]]

SHOP = [
    event("screen_view", path="/a", anonymousId="u1", properties={"value": 1}),
    event("screen_view", path="/a", anonymousId="u2", properties={"value": 2}),
    event("screen_view", path="/b", anonymousId="u1", properties={"value": 4.5}),
    event("buy", path="/b", anonymousId="u3", properties={"value": -3}),
    event("buy", namespace="shop"),
]


@pytest.fixture(scope="module")
def shop(service: Service) -> str:
    """A website with the five events of SHOP, all at noon of 2025-03-10."""
    website = service.website()
    send(service, website, *SHOP)
    return website


def client(service: Service, website: str) -> RunQuery:
    def run_query(*selects: Mapping[str, Json], **parts: Any) -> list[Row]:
        sent_query = query(
            *selects,
            table=parts.pop("table", "events"),
            filters=parts.pop("filters", ()),
            group_by=parts.pop("group_by", ()),
        )
        path = f"/v1/query/custom?website_id={website}"
        return rows_of(
            service.post(path, body(sent_query, **parts), headers=bearer(service.master))
        )

    return run_query


@pytest.fixture(scope="module")
def run_query(service: Service, shop: str) -> RunQuery:
    """Queries SHOP and returns the rows; takes selects, then other parts of a body by name."""
    return client(service, shop)


# Aggregates.

OVER_VALUES = [
    ("count", "*", 5),
    ("count", "value", 5),
    ("count", "path", 5),
    ("count", "anonymous_id", 5),
    ("count", "load_time", 5),
    ("uniq", "value", 4),
    ("uniq", "path", 2),
    ("uniq", "anonymous_id", 3),
    ("uniq", "namespace", 1),
    ("uniq", "event_name", 2),
    ("uniq", "load_time", 0),
    ("uniq", "city", 0),
    ("uniq", "id", 5),
    ("uniq", "website_id", 1),
    ("uniq", "time", 1),
    ("uniq", "is_bot", 1),
    ("sum", "value", 4.5),
    ("avg", "value", 1.125),
    ("max", "value", 4.5),
    ("min", "value", -3),
    ("p50", "value", 1.5),
    ("p75", "value", 2.625),
    ("p90", "value", 3.75),
    ("p95", "value", 4.125),
    ("p99", "value", 4.425),
    ("sum", "load_time", 0),
    ("avg", "load_time", None),
    ("max", "load_time", None),
    ("min", "load_time", None),
    ("p50", "load_time", None),
    ("p99", "load_time", None),
    ("sum", "properties.value", 4.5),
    ("avg", "properties.nothing", None),
]


@pytest.mark.parametrize(("aggregate", "field", "expected"), OVER_VALUES)
def test_aggregate_over_values(
    run_query: RunQuery, aggregate: str, field: str, expected: float | None
) -> None:
    assert alike(run_query(select(field, aggregate, "x")), [{"x": expected}])


OVER_NOTHING = [
    ("count", "*", 0),
    ("count", "value", 0),
    ("uniq", "value", 0),
    ("uniq", "path", 0),
    ("uniq", "properties.k", 0),
    ("sum", "value", 0),
    ("sum", "properties.k", 0),
    ("avg", "value", None),
    ("max", "value", None),
    ("min", "value", None),
    ("p50", "value", None),
    ("p95", "properties.k", None),
]


@pytest.mark.parametrize(("aggregate", "field", "expected"), OVER_NOTHING)
def test_aggregate_over_no_rows_is_still_one_row(
    run_query: RunQuery, aggregate: str, field: str, expected: float | None
) -> None:
    result = run_query(select(field, aggregate, "x"), startDate="2025-03-11")
    assert alike(result, [{"x": expected}])


def test_groups_over_no_rows_are_no_rows(run_query: RunQuery) -> None:
    assert run_query(group_by=["path"], startDate="2025-03-11") == []
    assert run_query(granularity="daily", startDate="2025-03-11") == []


@pytest.mark.parametrize(
    ("field", "aggregate", "name"),
    [
        ("*", "count", "count_all"),
        ("path", "uniq", "uniq_path"),
        ("value", "p95", "p95_value"),
        ("properties.plan", "count", "count_properties_plan"),
        ("properties.a.b c", "sum", "sum_properties_a_b c"),
    ],
)
def test_default_output_name_is_aggregate_and_field(
    run_query: RunQuery, field: str, aggregate: str, name: str
) -> None:
    assert [list(row) for row in run_query(select(field, aggregate))] == [[name]]


@pytest.mark.parametrize("alias", ["visits", "Besucher 🦆", '"', "`", "a.b", "\\", "n'; --", " "])
def test_alias_is_the_output_name_as_it_is(run_query: RunQuery, alias: str) -> None:
    assert run_query(select("*", "count", alias), group_by=["event_name"]) == [
        {"event_name": "screen_view", alias: 3},
        {"event_name": "buy", alias: 2},
    ]


def test_alias_may_be_the_name_of_a_column_that_is_not_grouped_by(run_query: RunQuery) -> None:
    filters = [where("path", "eq", "/a")]
    result = run_query(
        select("*", "count", "path"), select("value", "sum", "value"), filters=filters
    )
    assert result == [{"path": 2, "value": 3}]


def test_all_aggregates_can_be_combined(run_query: RunQuery) -> None:
    result = run_query(
        select("*", "count"), select("value", "sum"), select("value", "p50"), group_by=["path"]
    )
    assert result == [
        {"path": "/a", "count_all": 2, "sum_value": 3, "p50_value": 1.5},
        {"path": "/b", "count_all": 2, "sum_value": 1.5, "p50_value": 0.75},
        {"path": "", "count_all": 1, "sum_value": 0, "p50_value": None},
    ]


# Order.


def test_default_order_is_first_select_descending_then_groups_ascending(
    run_query: RunQuery,
) -> None:
    assert run_query(group_by=["event_name", "path"]) == [
        {"event_name": "screen_view", "path": "/a", "n": 2},
        {"event_name": "buy", "path": "", "n": 1},
        {"event_name": "buy", "path": "/b", "n": 1},
        {"event_name": "screen_view", "path": "/b", "n": 1},
    ]


def test_ties_are_ordered_by_the_group_by_columns(run_query: RunQuery) -> None:
    assert run_query(group_by=["path", "event_name"]) == [
        {"path": "/a", "event_name": "screen_view", "n": 2},
        {"path": "", "event_name": "buy", "n": 1},
        {"path": "/b", "event_name": "buy", "n": 1},
        {"path": "/b", "event_name": "screen_view", "n": 1},
    ]


def test_null_comes_last_in_both_directions(run_query: RunQuery) -> None:
    mean = select("value", "avg", "m")
    by_default = [{"path": "/a", "m": 1.5}, {"path": "/b", "m": 0.75}, {"path": "", "m": None}]
    assert run_query(mean, group_by=["path"]) == by_default
    descending = [{"field": "m", "direction": "desc"}]
    assert run_query(mean, group_by=["path"], orderBy=descending) == by_default
    ascending = [by_default[1], by_default[0], by_default[2]]
    assert run_query(mean, group_by=["path"], orderBy=[{"field": "m"}]) == ascending


def test_null_group_comes_last_in_both_directions(run_query: RunQuery) -> None:
    up = run_query(group_by=["value"], orderBy=[{"field": "value", "direction": "asc"}])
    down = run_query(group_by=["value"], orderBy=[{"field": "value", "direction": "desc"}])
    assert [row["value"] for row in up] == [-3, 1, 2, 4.5, None]
    assert [row["value"] for row in down] == [4.5, 2, 1, -3, None]


def test_order_by_several_outputs_is_by_the_first_then_the_next(run_query: RunQuery) -> None:
    order = [{"field": "n"}, {"field": "path", "direction": "desc"}]
    assert run_query(group_by=["event_name", "path"], orderBy=order) == [
        {"event_name": "buy", "path": "/b", "n": 1},
        {"event_name": "screen_view", "path": "/b", "n": 1},
        {"event_name": "buy", "path": "", "n": 1},
        {"event_name": "screen_view", "path": "/a", "n": 2},
    ]


def test_ties_of_order_by_use_the_default_order(run_query: RunQuery) -> None:
    visitors = select("anonymous_id", "uniq", "u")
    result = run_query(
        COUNT, visitors, group_by=["path"], orderBy=[{"field": "n", "direction": "desc"}]
    )
    assert [row["path"] for row in result] == ["/a", "/b", ""]
    result = run_query(visitors, COUNT, group_by=["path"], orderBy=[{"field": "n"}])
    assert [row["path"] for row in result] == ["", "/a", "/b"]


def test_order_by_is_ascending_by_default(run_query: RunQuery) -> None:
    result = run_query(group_by=["path"], orderBy=[{"field": "path"}])
    assert [row["path"] for row in result] == ["", "/a", "/b"]


def test_texts_are_ordered_by_code_point(service: Service, website: str) -> None:
    paths = ["/Z", "/a", "/É", "/Ａ", "/\U0001f600"]  # noqa: RUF001 - UTF-16 would swap the last two
    send(service, website, *(event(path=path) for path in reversed(paths)))
    result = client(service, website)(group_by=["path"])
    assert [row["path"] for row in result] == paths


# Groups.


@pytest.mark.slow
def test_every_column_of_every_table_can_be_grouped_by_and_counted(service: Service) -> None:
    """One row in each table suffices; other tests check the content of the schema endpoint."""
    website = service.website()
    send(service, website, event(anonymousId="u", sessionId="s"))
    vital = {"timestamp": "2025-03-10", "path": "/", "metricName": "LCP", "metricValue": 1}
    error = {"timestamp": "2025-03-10", "path": "/", "message": "m"}
    send(service, website, vital, path="/vitals")
    send(service, website, error, path="/errors")
    run_query = client(service, website)
    schema = service.get("/v1/query/schema").json()
    tables = [
        (table["name"], [column["name"] for column in table["columns"]])
        for table in schema["tables"]
    ]
    for table, columns in tables:
        for column in columns:
            field = column.replace("KEY", "k")
            result = run_query(COUNT, select(field, "count", "c"), table=table, group_by=[field])
            assert [(row["n"], row["c"]) for row in result] == [(1, 1)], (table, column)


def test_schema_of_a_website_lists_what_was_sent_lately(service: Service) -> None:
    website = service.website()
    properties = {"plan": "pro", "seats": 3, "trial": True, "items": [1], "none": None}
    now = datetime.now(UTC).isoformat()
    send(
        service,
        website,
        event("signup", at=now, properties=properties),
        event("signup", at=now, properties={"plan": 5}),
        event("view", at=now),
        event("old", at="2020-01-01", properties={"old": 1}),
    )
    path = f"/v1/query/schema?website_id={website}"
    described = service.get(path, headers=bearer(service.master)).json()
    names = [(one["name"], one["count"]) for one in described["eventNames"]]
    assert names == [("signup", 2), ("view", 1)]
    assert all(one["lastSeen"][:10] >= now[:10] for one in described["eventNames"])
    assert described["properties"] == [
        {"key": "plan", "kinds": ["text", "number"], "count": 2},
        {"key": "items", "kinds": ["json"], "count": 1},
        {"key": "seats", "kinds": ["number"], "count": 1},
        {"key": "trial", "kinds": ["boolean"], "count": 1},
    ]
    without = {key: described[key] for key in described if key not in ("eventNames", "properties")}
    assert without == service.get("/v1/query/schema").json()
    assert service.get(path).status_code == 401


def test_datetime_is_returned_in_utc_with_milliseconds(service: Service, website: str) -> None:
    send(service, website, event(at="2025-03-10T23:59:59.12+05:30"), event(at=1741564800000))
    result = client(service, website)(group_by=["time"], timezone="Asia/Tokyo")
    assert result == [
        {"time": "2025-03-10T00:00:00.000Z", "n": 1},
        {"time": "2025-03-10T18:29:59.120Z", "n": 1},
    ]


def test_boolean_is_returned_as_json_boolean(run_query: RunQuery) -> None:
    assert run_query(group_by=["is_bot"]) == [{"is_bot": False, "n": 5}]


def test_received_at_is_the_time_of_receipt(service: Service, website: str) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    send(service, website, event())
    after = datetime.now(UTC)
    [row] = client(service, website)(group_by=["received_at"])
    assert before <= datetime.fromisoformat(row["received_at"]) <= after


def test_range_applies_to_time_and_never_to_received_at(service: Service, website: str) -> None:
    today = datetime.now(UTC).date().isoformat()
    send(service, website, event())
    assert client(service, website)(startDate=today, endDate=today) == [{"n": 0}]
    assert client(service, website)() == [{"n": 1}]


# Limit, offset and their metadata.


def meta(service: Service, website: str, **parts: Json) -> dict[str, Json]:
    sent_query = query(group_by=["path"])
    path = f"/v1/query/custom?website_id={website}"
    response = service.post(path, body(sent_query, **parts), headers=bearer(service.master)).json()
    assert response.keys() == {"success", "data", "meta", "requestId"}
    assert response["success"] is True
    assert isinstance(response["requestId"], str)
    execution_time = response["meta"].pop("executionTime")
    assert isinstance(execution_time, int | float)
    assert execution_time >= 0
    assert response["meta"].pop("rowsRead") >= 0
    assert response["meta"].pop("bytesRead") >= 0
    assert response["meta"].pop("cached") in (True, False)
    assert datetime.fromisoformat(response["meta"].pop("watermark")) <= datetime.now(UTC)
    assert response["meta"]["rowCount"] == len(response["data"])
    meta_value: dict[str, Json] = response["meta"]
    return meta_value


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({}, (3, 1000, False), id="default"),
        pytest.param({"limit": 10_001}, (3, 10_000, False), id="over the maximum is cut"),
        pytest.param({"limit": 2}, (2, 2, True), id="more rows existed"),
        pytest.param({"limit": 3}, (3, 3, False), id="just enough"),
        pytest.param({"limit": 2, "offset": 1}, (2, 2, False), id="the last page"),
        pytest.param({"limit": 1, "offset": 1}, (1, 1, True), id="a page in the middle"),
        pytest.param(
            {"limit": 1.0, "offset": 1.0}, (1, 1, True), id="numbers with a fraction of 0"
        ),
        pytest.param({"limit": 1, "offset": 3}, (0, 1, False), id="behind the last row"),
    ],
)
def test_meta_has_row_count_limit_and_truncated(
    service: Service, shop: str, parts: dict[str, Json], expected: tuple[int, int, bool]
) -> None:
    count, limit, truncated = expected
    assert meta(service, shop, **parts) == {
        "rowCount": count,
        "limit": limit,
        "truncated": truncated,
    }


def test_offset_pages_through_the_rows_in_order(run_query: RunQuery) -> None:
    pages = [run_query(group_by=["path"], limit=1, offset=offset) for offset in range(4)]
    assert pages == [
        [{"path": "/a", "n": 2}],
        [{"path": "/b", "n": 2}],
        [{"path": "", "n": 1}],
        [],
    ]


def test_more_groups_than_the_maximum_are_paginated(service: Service, website: str) -> None:
    send(service, website, *(event(path=f"/{n:05}") for n in range(10_000)))
    send(service, website, event(path="/10000"))
    run_query = client(service, website)
    page = run_query(group_by=["path"], limit=20_000)
    assert [row["path"] for row in page] == [f"/{n:05}" for n in range(10_000)]
    assert run_query(group_by=["path"], limit=20_000, offset=10_000) == [{"path": "/10000", "n": 1}]
    assert len(run_query(group_by=["path"])) == 1000


# Visibility of rows.


def test_query_reads_only_its_own_website(service: Service, shop: str, website: str) -> None:
    send(service, website, event(path="/elsewhere"))
    assert client(service, website)(group_by=["path"]) == [{"path": "/elsewhere", "n": 1}]
    assert client(service, shop)(filters=[where("path", "eq", "/elsewhere")]) == [{"n": 0}]


def test_query_reads_every_acknowledged_event(service: Service, website: str) -> None:
    run_query = client(service, website)
    for count in range(1, 6):
        send(service, website, event())
        assert run_query() == [{"n": count}]


def test_visitor_is_identified_by_the_ip_and_user_agent_of_the_event(
    service: Service, website: str
) -> None:
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    send(service, website, event(ip="8.8.8.8", userAgent=firefox), event())
    columns = ["country", "browser_name", "os_name", "device_type"]
    assert client(service, website)(group_by=columns) == [
        dict.fromkeys(columns, "") | {"n": 1},
        {
            "country": "US",
            "browser_name": "Firefox",
            "os_name": "Linux",
            "device_type": "desktop",
            "n": 1,
        },
    ]


GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def test_bots_are_left_out_unless_a_filter_names_is_bot(service: Service, website: str) -> None:
    for path, items in (
        ("/track", [event("screen_view", sessionId="s", anonymousId="u")]),
        (
            "/vitals",
            [{"timestamp": 1741608000000, "path": "/", "metricName": "CLS", "metricValue": 1}],
        ),
        ("/errors", [{"timestamp": 1741608000000, "path": "/", "message": "m"}]),
    ):
        response = service.post(
            f"{path}?website_id={website}", items, headers={"User-Agent": GOOGLEBOT}
        )
        assert response.status_code == 200
    run_query = client(service, website)
    for table in ("events", "errors", "performance"):
        assert run_query(table=table) == [{"n": 0}]
        assert run_query(table=table, filters=[where("is_bot", "eq", True)]) == [{"n": 1}]
        assert run_query(table=table, filters=[where("is_bot", "ne", True)]) == [{"n": 0}]
        assert run_query(table=table, filters=[where("is_bot", "in", [True, False])]) == [{"n": 1}]
        assert run_query(table=table, group_by=["is_bot"]) == []
    assert run_query(table="sessions") == [{"n": 0}]
    assert run_query(table="profiles") == [{"n": 0}]


def test_errors_and_performance_have_aliases(service: Service, website: str) -> None:
    vital = {"timestamp": "2025-03-10", "path": "/", "metricName": "LCP", "metricValue": 12.5}
    error = {"timestamp": "2025-03-10", "path": "/", "message": "oh", "lineno": 7}
    send(service, website, vital, path="/vitals")
    send(service, website, error, path="/errors")
    run_query = client(service, website)
    for table in ("errors", "error_spans"):
        result = run_query(table=table, group_by=["message", "level", "lineno", "colno"])
        assert result == [{"message": "oh", "level": "error", "lineno": 7, "colno": None, "n": 1}]
    for table in ("performance", "web_vitals_spans"):
        largest = select("metric_value", "max", "m")
        assert run_query(largest, table=table, group_by=["metric_name"]) == [
            {"metric_name": "LCP", "m": 12.5}
        ]
