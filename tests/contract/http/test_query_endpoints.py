"""What all query endpoints share, and whole responses of those beside /v1/query/custom."""

import io
from typing import Any

import msgspec
import pytest
from arro3.io import read_ipc_stream

from headrace.base.clock import FixedClock
from headrace.http import endpoints
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.endpoints import QUERY_ENDPOINTS
from headrace.http.routes.query import QueryRunner
from headrace.model.plan import CompiledQuery
from headrace.ports.store import QueryLimits, Rows, StoreResult, StoreStatus
from headrace.query.execution import QueryExecution
from headrace.query.funnel.service import FunnelService
from headrace.query.result_values import QueryResult
from headrace.query.retention.service import RetentionService
from headrace.query.standard.service import StandardService
from headrace.query.values.service import ValuesService
from testing.queries import execution_over_store
from tests.contract.http.fakes import (
    NOTHING_READ,
    NOW_MS,
    PRIVATE,
    READER_KEY,
    REQUEST_ID,
    WRITER_KEY,
    FakeQueryService,
    Harness,
    Response,
    bearer,
    empty_result,
    query_error,
    status_and_body,
)

NOTHING_READ_NOW = {**NOTHING_READ, "watermark": "2026-01-05T10:00:00.000Z"}
DAYS = {"startDate": "2026-01-01", "endDate": "2026-01-31"}
QUERY = {
    "query": {
        "table": "events",
        "selects": [{"field": "*", "aggregate": "count", "alias": "views"}],
        "filters": [{"field": "path", "operator": "eq", "value": "/it's"}],
    },
    **DAYS,
}
STEPS = [
    {"name": "cart", "filters": [{"field": "path", "operator": "eq", "value": "/cart"}]},
    {"filters": [{"field": "event_name", "operator": "eq", "value": "purchase"}]},
]


class StoreOfRows:
    """Returns the same rows for every select."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        assert (query.website_id, limits.max_rows) == (PRIVATE, 10_001)
        return StoreResult(self._rows)

    async def status(self) -> StoreStatus:
        return StoreStatus.READY


def send(
    harness: Harness,
    spec: EndpointSpec,
    body: Any,
    accept: str = "application/json",
    key: str = READER_KEY,
) -> Response:
    return harness.call(
        "POST",
        spec.path,
        msgspec.json.encode(body),
        query=f"website_id={PRIVATE}",
        headers={**bearer(key), "Accept": accept},
    )


def harness_over(
    spec: EndpointSpec, service: type[FunnelService | RetentionService], rows: Rows
) -> Harness:
    harness = Harness()
    execution: QueryExecution = execution_over_store(StoreOfRows(rows), FixedClock(NOW_MS))
    runner: QueryRunner[QueryResult] = service(execution)
    harness.runners = {spec: runner}
    return harness


@pytest.mark.parametrize("spec", QUERY_ENDPOINTS, ids=lambda spec: spec.name)
def test_every_query_endpoint_counts_one_request_and_runs_its_own_use_case(
    spec: EndpointSpec,
) -> None:
    harness, own = Harness(), FakeQueryService(empty_result())
    harness.runners = {spec: own}

    response = send(harness, spec, {"x": 1})

    assert status_and_body(response) == (
        200,
        {
            "success": True,
            "data": [],
            "meta": {
                "rowCount": 0,
                "executionTime": 1.5,
                "limit": 1000,
                "truncated": False,
                **NOTHING_READ,
            },
            "requestId": REQUEST_ID,
        },
    )
    assert own.requests == [(PRIVATE, b'{"x":1}')]
    assert harness.queries.requests == []
    assert harness.limiter.callers == ["key:key_hr_reader"]
    assert response.headers["x-ratelimit-limit"] == "30"


@pytest.mark.parametrize("spec", QUERY_ENDPOINTS, ids=lambda spec: spec.name)
def test_every_query_endpoint_needs_credentials(spec: EndpointSpec) -> None:
    response = Harness().call("POST", spec.path, b"{}", query=f"website_id={PRIVATE}")
    assert status_and_body(response) == (
        401,
        query_error("Authentication required", "UNAUTHORIZED"),
    )


def test_funnel_has_a_row_for_each_step_of_each_group() -> None:
    harness = harness_over(
        endpoints.FUNNEL, FunnelService, [["DE", [4, 1], [90_500]], ["", [1], []]]
    )

    response = send(harness, endpoints.FUNNEL, {"steps": STEPS, "groupBy": "country", **DAYS})

    assert status_and_body(response) == (
        200,
        {
            "success": True,
            "data": [
                {
                    "country": country,
                    "step": step,
                    "name": name,
                    "count": count,
                    "rate": rate,
                    "medianSeconds": median_s,
                }
                for country, step, name, count, rate, median_s in [
                    ("DE", 1, "cart", 4, 1, None),
                    ("DE", 2, None, 1, 0.25, 90.5),
                    ("", 1, "cart", 1, 1, None),
                    ("", 2, None, 0, 0, None),
                ]
            ],
            "meta": {
                "rowCount": 4,
                "executionTime": 0,
                "limit": 1000,
                "truncated": False,
                **NOTHING_READ_NOW,
            },
            "requestId": REQUEST_ID,
        },
    )


def test_funnel_is_csv_where_that_is_preferred() -> None:
    harness = harness_over(endpoints.FUNNEL, FunnelService, [[[4, 1], [90_500]]])
    response = send(harness, endpoints.FUNNEL, {"steps": STEPS, **DAYS}, "text/csv")
    assert response.body == (
        b"step,name,count,rate,medianSeconds\r\n1,cart,4,1,\r\n2,,1,0.25,90.5\r\n"
    )


def test_invalid_funnel_names_the_cause() -> None:
    harness = harness_over(endpoints.FUNNEL, FunnelService, [])
    response = send(harness, endpoints.FUNNEL, {"steps": STEPS[:1], **DAYS})
    assert status_and_body(response) == (
        400,
        query_error("Invalid steps: 1 given, a funnel has 2 to 10", "INVALID_STEPS"),
    )


RETURNING: dict[str, Any] = {
    "first": {"filters": []},
    "return": {"filters": []},
    "granularity": "daily",
    "periods": 2,
    **DAYS,
}


def test_retention_has_a_row_for_each_cohort() -> None:
    harness = harness_over(endpoints.RETENTION, RetentionService, [[20_458, 4, [3, 1]]])

    response = send(harness, endpoints.RETENTION, RETURNING)

    assert status_and_body(response) == (
        200,
        {
            "success": True,
            "data": [{"date": "2026-01-05", "size": 4, "returned": [3, None]}],
            "meta": {
                "rowCount": 1,
                "executionTime": 0,
                "limit": 10_000,
                "truncated": False,
                **NOTHING_READ_NOW,
            },
            "requestId": REQUEST_ID,
        },
    )


def test_retention_is_csv_and_arrow_with_json_text() -> None:
    harness = harness_over(endpoints.RETENTION, RetentionService, [[20_458, 4, [3, 1]]])
    response = send(harness, endpoints.RETENTION, RETURNING, "text/csv")
    assert response.body == b'date,size,returned\r\n2026-01-05,4,"[3,null]"\r\n'
    stream = send(harness, endpoints.RETENTION, RETURNING, "application/vnd.apache.arrow.stream")
    table: Any = read_ipc_stream(io.BytesIO(stream.body)).read_all()
    assert table.column("returned").to_pylist() == ["[3,null]"]


def test_invalid_retention_query_names_the_cause() -> None:
    harness = harness_over(endpoints.RETENTION, RetentionService, [])
    response = send(harness, endpoints.RETENTION, {**RETURNING, "periods": 0})
    assert status_and_body(response) == (
        400,
        query_error("Invalid periods: must be a whole number from 1 to 60", "INVALID_PERIODS"),
    )


def test_values_take_their_parameters_from_the_query_string() -> None:
    harness = Harness()
    service = ValuesService(
        execution_over_store(StoreOfRows([["/b", 3], ["/a", 1]]), FixedClock(NOW_MS))
    )
    harness.runners = {endpoints.VALUES: service}

    response = harness.call(
        "GET",
        "/v1/query/values",
        query=f"website_id={PRIVATE}&table=events&field=path&limit=1",
        headers=bearer(READER_KEY),
    )

    assert status_and_body(response) == (
        200,
        {
            "success": True,
            "data": [{"value": "/b", "count": 3}],
            "meta": {
                "rowCount": 1,
                "executionTime": 0,
                "limit": 1,
                "truncated": True,
                **NOTHING_READ_NOW,
            },
            "requestId": REQUEST_ID,
        },
    )
    assert harness.limiter.callers == ["key:key_hr_reader"]
    assert response.headers["x-ratelimit-limit"] == "30"


@pytest.mark.parametrize(
    ("query", "headers", "status", "error", "code"),
    [
        (f"website_id={PRIVATE}", {}, 401, "Authentication required", "UNAUTHORIZED"),
        (
            "website_id=web_x&x=1",
            bearer(READER_KEY),
            404,
            "Website not found",
            "WEBSITE_NOT_FOUND",
        ),
        (
            f"website_id={PRIVATE}&tabel=events",
            bearer(READER_KEY),
            400,
            'Invalid parameter "tabel" (did you mean "table"?)',
            "INVALID_PARAMETER",
        ),
    ],
    ids=["credentials", "website", "parameter"],
)
def test_values_are_refused_as_queries_are(
    query: str, headers: dict[str, str], status: int, error: str, code: str
) -> None:
    harness = Harness()
    harness.runners = {endpoints.VALUES: ValuesService(execution_over_store(StoreOfRows([])))}
    response = harness.call("GET", "/v1/query/values", query=query, headers=headers)
    assert status_and_body(response) == (status, query_error(error, code))


STANDARD = {"types": ["summary", "pages"], **DAYS}


class StoreOfTables:
    """Returns the rows of the first text that a select contains, and how much it has read."""

    def __init__(self, rows: dict[str, Rows]) -> None:
        self._rows = rows

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        assert (query.website_id, limits.timeout_s > 0) == (PRIVATE, True)
        rows = next(rows for text, rows in self._rows.items() if text in query.sql)
        return StoreResult(rows, rows_read=10, bytes_read=100)

    async def status(self) -> StoreStatus:
        return StoreStatus.READY


def test_standard_query_has_a_key_for_each_type_and_a_rate_of_its_own() -> None:
    store = StoreOfTables(
        {
            "path AS c0": [["/", 3, 2], ["/a", 1, 1]],
            "sum(event_count)": [[2, 4, 5]],
            "FROM (": [[4, 1, 7.5]],
        }
    )
    harness = Harness()
    harness.standard = StandardService(execution_over_store(store, FixedClock(NOW_MS)))

    response = send(harness, endpoints.STANDARD, {**STANDARD, "limit": 1}, "text/csv")

    summary = {
        "visitors": 2,
        "sessions": 4,
        "pageViews": 4,
        "events": 5,
        "bounceRate": 0.25,
        "medianDuration": 7.5,
    }
    assert status_and_body(response) == (
        200,
        {
            "success": True,
            "data": {"summary": summary, "pages": [{"path": "/", "views": 3, "visitors": 2}]},
            "meta": {
                "rowCount": 2,
                "executionTime": 0,
                "limit": 1,
                "truncated": True,
                **NOTHING_READ_NOW,
                "rowsRead": 30,
                "bytesRead": 300,
            },
            "requestId": REQUEST_ID,
        },
    )
    assert harness.limiter.callers == []
    assert harness.standard_limiter.callers == ["key:key_hr_reader"]
    refused = send(harness, endpoints.STANDARD, STANDARD, key=WRITER_KEY)
    assert (refused.status, refused.headers["x-ratelimit-limit"]) == (403, "240")


@pytest.mark.parametrize(
    ("website", "headers", "types", "status", "error"),
    [
        (PRIVATE, {}, [], 401, ("Authentication required", "UNAUTHORIZED")),
        ("web_x", bearer(READER_KEY), [], 404, ("Website not found", "WEBSITE_NOT_FOUND")),
        (
            PRIVATE,
            bearer(READER_KEY),
            ["page"],
            400,
            ('Invalid types "page" (did you mean "pages"?)', "INVALID_TYPES"),
        ),
    ],
    ids=["credentials", "website", "types"],
)
def test_standard_query_is_refused_as_queries_are(
    website: str, headers: dict[str, str], types: list[str], status: int, error: tuple[str, str]
) -> None:
    response = Harness().call(
        "POST",
        "/v1/query/standard",
        msgspec.json.encode({**STANDARD, "types": types}),
        query=f"website_id={website}",
        headers=headers,
    )
    assert status_and_body(response) == (status, query_error(*error))


SQL = """\
-- c0: views
SELECT
    count() AS c0
FROM events
WHERE
    website_id = 'web_private' AND
    time >= fromUnixTimestamp64Milli(1767225600000::Int64, 'UTC') AND
    time < fromUnixTimestamp64Milli(1769904000000::Int64, 'UTC') AND
    NOT is_bot AND
    path = '/it\\'s'
LIMIT 1001 OFFSET 0
SETTINGS session_timezone = 'UTC', totals_mode = 'before_having'
"""


def test_sql_of_a_query_is_returned_in_json_and_as_text_and_is_not_run() -> None:
    harness = Harness()

    in_json = send(harness, endpoints.SQL, QUERY)
    as_text = send(harness, endpoints.SQL, QUERY, "application/sql")

    assert status_and_body(in_json) == (
        200,
        {"success": True, "sql": SQL, "requestId": REQUEST_ID},
    )
    assert (as_text.status, as_text.headers["content-type"], as_text.body.decode()) == (
        200,
        "application/sql",
        SQL,
    )
    assert harness.limiter.callers == ["key:key_hr_reader"] * 2


def test_sql_of_a_query_that_breaks_a_rule_is_refused_as_the_query_is() -> None:
    refused = send(Harness(), endpoints.SQL, {**QUERY, "limit": 0})
    assert status_and_body(refused) == (
        400,
        query_error("Invalid limit: must be a whole number from 1", "INVALID_LIMIT"),
    )


def test_sql_is_shown_to_callers_that_may_query_alone() -> None:
    refused = send(Harness(), endpoints.SQL, QUERY, key=WRITER_KEY)
    assert status_and_body(refused) == (
        403,
        query_error("API key missing read:data scope", "MISSING_SCOPE"),
    )
