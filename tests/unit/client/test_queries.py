"""What queries return, and what their results can be used for."""

import copy
import pickle
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import httpx
import pytest

from headrace_client import Headrace, QueryRefused, QueryUnavailable, Result
from headrace_client.queries import ArrowRequest
from headrace_client.query_bodies import QueryRequest
from headrace_client.testing import FakeHeadrace
from headrace_client.testing.arrow import arrow_columns

REPLY = {"data": [{"n": 3}], "meta": {"rowCount": 1}, "totals": {"n": 3}}


@pytest.fixture
def client(server: FakeHeadrace) -> Iterator[Headrace]:
    with Headrace(server.url, "key", outbox=None, website_id="web_1") as one:
        yield one


def result() -> Result:
    return Result(REPLY, ArrowRequest(lambda: b"arrow"))


def pickled(one: Result) -> Result:
    restored: Result = pickle.loads(pickle.dumps(one))  # noqa: S301 - made here
    return restored


def test_pickled_result_has_its_rows_and_what_the_service_says_about_them(
    client: Headrace, server: FakeHeadrace
) -> None:
    server.answer_queries([{"n": 3}])
    found = client.query({})

    restored = pickled(found)

    assert (restored, restored.meta, restored.totals) == (found, found.meta, found.totals)


def test_pickled_result_has_the_arrow_stream_that_was_fetched_before() -> None:
    fetched = result()
    fetched.arrow_stream()

    assert pickled(fetched).arrow_stream() == b"arrow"
    with pytest.raises(QueryRefused, match="was pickled before its Arrow stream was fetched"):
        pickled(result()).arrow_stream()


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy])
def test_copied_result_can_fetch_its_arrow_stream(make_copy: Callable[[Result], Result]) -> None:
    assert make_copy(result()).arrow_stream() == b"arrow"


def test_standard_queries_return_the_results_of_their_types(
    client: Headrace, server: FakeHeadrace
) -> None:
    server.answer_standard({"summary": {"visitors": 3}, "devices": [{"device": "tv"}]})

    results = client.standard(["summary", "pages"], last_days=7)

    assert results == {"summary": {"visitors": 3}, "pages": []}
    assert server.queries == [{"types": ["summary", "pages"], "lastDays": 7}]


@pytest.mark.parametrize(("key", "status"), [(None, 401), ("key", 400)], ids=["no key", "no JSON"])
def test_fake_server_refuses_queries_as_the_service_does(
    server: FakeHeadrace, key: str | None, status: int
) -> None:
    request = QueryRequest("/v1/query/custom", "web_1", b"{")
    with (
        Headrace(server.url, key, outbox=None, website_id="web_1") as client,
        pytest.raises(QueryRefused) as refusal,
    ):
        client.query_client.run(request)

    assert refusal.value.status == status


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_query_that_may_succeed_later_is_unavailable(
    client: Headrace, server: FakeHeadrace, status: int
) -> None:
    server.reply_once(status, {"success": False, "error": "Not now", "code": "NOT_NOW"})

    with pytest.raises(QueryUnavailable, match=r"^Not now$") as failure:
        client.query({})

    assert (failure.value.status, failure.value.code) == (status, "NOT_NOW")


@pytest.mark.parametrize(
    "error", [OSError("no route"), httpx.InvalidURL("no host")], ids=["OSError", "InvalidURL"]
)
def test_query_whose_request_cannot_be_made_is_unavailable(error: Exception) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    with (
        Headrace(
            "http://headrace.example",
            "key",
            outbox=None,
            website_id="web_1",
            make_http_client=lambda: httpx.Client(transport=httpx.MockTransport(fail)),
        ) as client,
        pytest.raises(QueryUnavailable, match=f"^no response: {error}$"),
    ):
        client.query({})


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs pyarrow")
def test_fake_server_answers_with_arrow(client: Headrace, server: FakeHeadrace) -> None:
    server.answer_queries([{"n": 3, "name": "a"}, {"n": None, "name": "b"}])

    found = client.query({})

    assert found.to_arrow().to_pylist() == list(found)


def test_fake_server_writes_arrow_columns_as_the_service_does() -> None:
    rows: list[dict[str, Any]] = [
        {"date": "2026-05-01", "properties.plan": "pro", "previous": {"n": 1}, "n": 2**63},
        {"date": "2026-05-02", "properties.plan": None, "previous": None, "n": None, "is": True},
        {"date": "2026-05-03", "properties.plan": 5, "previous": {"n": 2}, "n": 1, "of": [1]},
    ]

    assert arrow_columns(rows) == {
        "date": ["2026-05-01", "2026-05-02", "2026-05-03"],
        "properties.plan": ['"pro"', None, "5"],
        "n": [2.0**63, None, 1.0],
        "is": [None, True, None],
        "of": [None, None, "[1]"],
        "previous.n": [1.0, None, 2.0],
    }
    assert list(arrow_columns(rows))[-1] == "previous.n"
    assert arrow_columns([]) == {}
