"""/v1/saved over a fake use case: who may ask, what is returned, and when nothing is."""

import io
from typing import Any

import pytest
from arro3.io import read_ipc_stream, read_parquet

from headrace.base.errors import InvalidQuery, QueryErrorCode, QueryTimedOut
from headrace.base.settings import Settings
from headrace.model.plan import OutputKind
from headrace.model.saved_query import SavedQuery
from headrace.model.tenancy import WebsiteId, hash_secret
from headrace.ports.rate_limiter import RateLimitResult
from headrace.query.result_values import QueryResult
from tests.contract.http.fakes import (
    FOREIGN_KEY,
    MANAGER_KEY,
    NOW_MS,
    PRIVATE,
    PUBLIC,
    READER_KEY,
    REQUEST_ID,
    Harness,
    Response,
)

BODY = b'{"query": {"b": 1.50, "a": 2}}'
RESULT = QueryResult(
    ("path", "n"),
    (OutputKind.TEXT, OutputKind.NUMBER),
    [["/", 2], [None, 1.5]],
    limit=1000,
    truncated=False,
    execution_ms=1.5,
)


def call(
    harness: Harness,
    method: str,
    path: str = "top",
    body: bytes = b"",
    *,
    key: str | None = READER_KEY,
    query: str = f"website_id={PRIVATE}",
    **headers: str,
) -> Response:
    credentials = {} if key is None else {"Authorization": f"Bearer {key}"}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return harness.call(
        method, f"/v1/saved/{path}", body, query=query, headers={**credentials, **sent}
    )


def save(harness: Harness, **options: Any) -> Response:
    return call(harness, "PUT", body=BODY, key=MANAGER_KEY, Host="x.example", **options)


def saved_harness() -> Harness:
    harness = Harness(result=RESULT)
    assert save(harness).status == 201
    return harness


def test_a_new_query_is_created_with_its_token_shown_once() -> None:
    harness = Harness()
    response = save(harness)
    assert response.status == 201
    assert response.json == {
        "success": True,
        "data": {
            "name": "top",
            "token": "hq_0",
            "url": "http://x.example/v1/saved/top.json?token=hq_0",
        },
        "requestId": REQUEST_ID,
    }
    assert response.headers["cache-control"] == "no-store"
    assert harness.saved_queries.kept[PRIVATE, "top"].body == BODY


def test_a_replaced_query_has_no_token_to_show_unless_it_is_rotated() -> None:
    harness = saved_harness()
    data = {
        "name": "top",
        "token": None,
        "url": f"http://x.example/v1/saved/top.json?website_id={PRIVATE}",
    }
    for more in ("", "&rotate=false"):
        response = save(harness, query=f"website_id={PRIVATE}{more}")
        assert (response.status, response.json["data"]) == (200, data)
    rotated = save(harness, query=f"website_id={PRIVATE}&rotate=true")
    assert (rotated.status, rotated.json["data"]["token"]) == (200, "hq_1")


def test_rotate_is_true_or_false() -> None:
    response = save(Harness(), query=f"website_id={PRIVATE}&rotate=yes")
    assert (response.status, response.json["code"], response.json["error"]) == (
        400,
        "INVALID_PARAMETER",
        'Invalid parameter "rotate": must be true or false',
    )


def test_saving_refuses_an_unknown_parameter_and_changes_nothing() -> None:
    harness = saved_harness()
    response = save(harness, query=f"website_id={PRIVATE}&rotat=true")
    assert (response.status, response.json["code"], response.json["error"]) == (
        400,
        "INVALID_PARAMETER",
        'Invalid parameter "rotat" (did you mean "rotate"?)',
    )
    assert save(harness, query=f"website_id={PRIVATE}&rotate=true").json["data"]["token"] == "hq_1"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_definition_is_shown_as_it_was_sent(method: str) -> None:
    harness = saved_harness()
    key = READER_KEY if method == "GET" else MANAGER_KEY
    response = call(harness, method, key=key, Host="x.example")
    assert response.status == 200
    assert b'"query":{"query": {"b": 1.50, "a": 2}}' in response.body
    assert response.json["data"] == {
        "name": "top",
        "query": {"query": {"b": 1.5, "a": 2}},
        "created": "2026-01-05T10:00:00.000Z",
        "updated": "2026-01-05T10:00:00.000Z",
        "url": f"http://x.example/v1/saved/top.json?website_id={PRIVATE}",
    }
    assert ((PRIVATE, "top") in harness.saved_queries.kept) is (method == "GET")


def list_queries(harness: Harness, *, key: str | None, query: str) -> Response:
    headers = {"Host": "x.example", **({} if key is None else {"Authorization": f"Bearer {key}"})}
    return harness.call("GET", "/v1/saved", query=query, headers=headers)


def test_the_list_has_names_and_urls_and_neither_bodies_nor_tokens() -> None:
    harness = saved_harness()
    call(harness, "PUT", "a", BODY, key=MANAGER_KEY)
    response = list_queries(harness, key=MANAGER_KEY, query=f"website_id={PRIVATE}")
    assert response.status == 200
    assert response.json == {
        "success": True,
        "data": [
            {
                "name": name,
                "created": "2026-01-05T10:00:00.000Z",
                "updated": "2026-01-05T10:00:00.000Z",
                "url": f"http://x.example/v1/saved/{name}.json?website_id={PRIVATE}",
            }
            for name in ("a", "top")
        ],
        "requestId": REQUEST_ID,
    }
    assert response.headers["x-ratelimit-remaining"] == "29"


@pytest.mark.parametrize(
    ("query", "key", "status", "error"),
    [
        (f"website_id={PUBLIC}", None, 401, "Authentication required"),
        (f"website_id={PRIVATE}", "hr_unknown", 401, "Invalid API key"),
        (f"website_id={PRIVATE}", READER_KEY, 403, "API key missing manage:data scope"),
        ("", MANAGER_KEY, 400, "website_id is required"),
        ("website_id=web_nowhere", MANAGER_KEY, 404, "Website not found"),
    ],
)
def test_listing_takes_the_rights_of_saving(
    query: str, key: str | None, status: int, error: str
) -> None:
    response = list_queries(saved_harness(), key=key, query=query)
    assert (response.status, response.json["error"]) == (status, error)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_name_is_404(method: str) -> None:
    key = READER_KEY if method == "GET" else MANAGER_KEY
    response = call(Harness(), method, key=key)
    assert (response.status, response.json["error"]) == (404, "Not found")


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize(
    ("query", "key", "status", "error"),
    [
        (f"website_id={PUBLIC}", None, 401, "Authentication required"),
        (f"website_id={PRIVATE}", "hr_unknown", 401, "Invalid API key"),
        (f"website_id={PRIVATE}", READER_KEY, 403, "API key missing manage:data scope"),
        ("", MANAGER_KEY, 400, "website_id is required"),
        ("website_id=web_nowhere", MANAGER_KEY, 404, "Website not found"),
    ],
)
def test_changing_takes_a_key_with_manage_data(
    method: str, query: str, key: str | None, status: int, error: str
) -> None:
    harness = saved_harness()
    response = call(harness, method, body=BODY, key=key, query=query)
    assert (response.status, response.json["error"]) == (status, error)
    assert list(harness.saved_queries.kept) == [(PRIVATE, "top")]


@pytest.mark.parametrize("path", ["top", "top.json"])
@pytest.mark.parametrize(
    ("query", "key", "status", "error"),
    [
        (f"website_id={PRIVATE}", None, 401, "Authentication required"),
        (f"website_id={PRIVATE}", "hr_unknown", 401, "Invalid API key"),
        (f"website_id={PRIVATE}", MANAGER_KEY, 403, "API key missing read:data scope"),
        ("", READER_KEY, 400, "website_id is required"),
        (f"website_id={PRIVATE}", FOREIGN_KEY, 404, "Website not found"),
    ],
)
def test_reading_is_refused_as_a_query_is(
    path: str, query: str, key: str | None, status: int, error: str
) -> None:
    response = call(saved_harness(), "GET", path, key=key, query=query)
    assert (response.status, response.json["error"]) == (status, error)


def test_a_refused_query_is_400_and_not_saved() -> None:
    harness = Harness()
    harness.saved_queries.outcome = InvalidQuery(QueryErrorCode.INVALID_TABLE, ' "x"')
    response = save(harness)
    assert (response.status, response.json["code"]) == (400, "INVALID_TABLE")
    assert harness.saved_queries.kept == {}


@pytest.mark.parametrize("path", ["top", "top.json", "top.csv"])
def test_each_call_counts_as_a_query(path: str) -> None:
    harness = saved_harness()
    response = call(harness, "GET", path)
    assert response.headers["x-ratelimit-remaining"] == "29"
    assert harness.limiter.callers == ["key:key_hr_manager", "key:key_hr_reader"]
    harness.limiter.verdict = RateLimitResult(allowed=False, limit=30, remaining=0, reset_s=7)
    refused = call(harness, "GET", path)
    assert (refused.status, refused.headers["retry-after"]) == (429, "7")


def test_the_answer_is_that_of_a_query_with_an_entity_tag() -> None:
    response = call(saved_harness(), "GET", "top.json")
    assert response.status == 200
    assert response.json["data"] == [{"path": "/", "n": 2}, {"path": None, "n": 1.5}]
    assert response.json["meta"]["rowCount"] == 2
    assert response.headers["etag"] == 'W/"1"'
    assert response.headers["cache-control"] == "private, no-cache"


def test_each_format_has_the_rows_and_its_type() -> None:
    harness = saved_harness()
    responses = {
        ending: call(harness, "GET", f"top.{ending}")
        for ending in ("csv", "ndjson", "arrow", "parquet")
    }
    assert {ending: each.headers["content-type"] for ending, each in responses.items()} == {
        "csv": "text/csv; charset=utf-8; header=present",
        "ndjson": "application/x-ndjson",
        "arrow": "application/vnd.apache.arrow.stream",
        "parquet": "application/vnd.apache.parquet",
    }
    for each in responses.values():
        assert (each.headers["x-row-count"], each.headers["x-truncated"]) == ("2", "false")
    assert responses["csv"].body == b"path,n\r\n/,2\r\n,1.5\r\n"
    assert responses["ndjson"].body == b'{"path":"/","n":2}\n{"path":null,"n":1.5}\n'
    columns = {"path": ["/", None], "n": [2.0, 1.5]}
    arrow = read_ipc_stream(io.BytesIO(responses["arrow"].body)).read_all()
    parquet = read_parquet(io.BytesIO(responses["parquet"].body)).read_all()
    for table in (arrow, parquet):
        assert {name: table[name].to_pylist() for name in table.column_names} == columns  # pyright: ignore[reportUnknownMemberType] - the stubs' gap


def test_csv_with_escaped_texts_is_another_format_to_its_entity_tag() -> None:
    of_settings: list[list[str]] = []
    for csv_text in ("exact", "escaped"):
        harness = Harness(Settings(query_csv_text=csv_text), RESULT)
        save(harness)
        for ending in ("csv", "json"):
            call(harness, "GET", f"top.{ending}")
        of_settings.append(harness.saved_queries.media_formats)
    assert of_settings == [["csv-exact", "json"], ["csv-escaped", "json"]]


def test_the_accept_header_does_not_change_the_format() -> None:
    response = call(saved_harness(), "GET", "top.json", Accept="text/csv")
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("tag", ['"1"', 'W/"1"', '"0", W/"1"', "*"])
def test_a_client_that_has_the_answer_gets_304_and_no_body(tag: str) -> None:
    harness = saved_harness()
    response = call(harness, "GET", "top.json", If_None_Match=tag)
    assert (response.status, response.body) == (304, b"")
    assert response.headers["etag"] == 'W/"1"'
    assert response.headers["x-ratelimit-remaining"] == "29"
    assert "content-length" not in response.headers
    harness.saved_queries.entity_tag = 'W/"2"'
    if tag != "*":
        assert call(harness, "GET", "top.json", If_None_Match=tag).status == 200


def test_a_token_needs_neither_a_key_nor_a_website() -> None:
    harness = saved_harness()
    for query in ("token=hq_0", f"token=hq_0&website_id={PRIVATE}"):
        response = call(harness, "GET", "top.csv", key="hr_unknown", query=query)
        assert (response.status, response.body[:6]) == (200, b"path,n")
    assert harness.limiter.callers[1:] == [f"saved:{PRIVATE}:top"] * 2


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("top.json", "token=hq_9"),
        ("other.json", "token=hq_0"),
        ("top.json", f"token=hq_0&website_id={PUBLIC}"),
    ],
)
def test_a_wrong_token_is_404(path: str, query: str) -> None:
    harness = saved_harness()
    response = call(harness, "GET", path, key=READER_KEY, query=query)
    assert (response.status, response.json["error"]) == (404, "Not found")


def test_a_token_reads_no_definition_and_no_other_query() -> None:
    response = call(saved_harness(), "GET", "top", key=None, query="token=hq_0")
    assert (response.status, response.json["error"]) == (401, "Authentication required")


def test_a_token_ends_with_its_website() -> None:
    harness = saved_harness()
    website = WebsiteId("web_gone")
    gone = SavedQuery(website, "top", BODY, hash_secret("hq_x"), NOW_MS, NOW_MS)
    harness.saved_queries.tokens["hq_x"] = gone
    response = call(harness, "GET", "top.json", key=None, query="token=hq_x")
    assert (response.status, response.json["error"]) == (404, "Not found")


def test_a_public_website_is_answered_without_a_key() -> None:
    harness = saved_harness()
    harness.saved_queries.kept[PUBLIC, "top"] = harness.saved_queries.kept[PRIVATE, "top"]
    response = call(harness, "GET", "top.json", key=None, query=f"website_id={PUBLIC}")
    assert response.status == 200


def test_an_answer_that_takes_too_long_is_504() -> None:
    harness = saved_harness()
    harness.saved_queries.outcome = QueryTimedOut("Query timed out")
    response = call(harness, "GET", "top.json")
    assert (response.status, response.json["code"]) == (504, "QUERY_TIMEOUT")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "top", "PUT, GET, DELETE"), ("PUT", "top.json", "GET, OPTIONS")],
)
def test_other_methods_are_405(method: str, path: str, allowed: str) -> None:
    response = call(Harness(), method, path)
    assert (response.status, response.headers["allow"]) == (405, allowed)
