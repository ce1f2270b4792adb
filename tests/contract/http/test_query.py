"""The query endpoint over fakes: order of checks, limits, formats and cancellation."""

import asyncio
import csv
import gzip
import io
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import pytest
from arro3.core import DataType
from arro3.io import read_ipc_stream
from starlette.types import Message

from headrace.base.errors import (
    DirectoryUnavailable,
    InvalidQuery,
    QueryErrorCode,
    QueryTimedOut,
    QueryTooLarge,
    StoreUnavailable,
)
from headrace.base.settings import Settings
from headrace.model.plan import OutputKind
from headrace.ports.rate_limiter import RateLimitResult
from headrace.query.result_values import QueryResult
from tests.contract.http.fakes import (
    FOREIGN_KEY,
    JSON_HEADERS,
    NOTHING_READ,
    NOW_MS,
    PRIVATE,
    PUBLIC,
    READER_KEY,
    REQUEST_ID,
    WRITER_KEY,
    FakeQueryService,
    Harness,
    bearer,
    make_scope,
    make_tenancy,
    query_error,
    status_and_body,
)

PATH = "/v1/query/custom"
SMALL = Settings(max_query_bytes=100, max_body_objects=3, max_body_keys=3)
TOO_LONG = b"x" * 101
RATE = {"x-ratelimit-limit": "30", "x-ratelimit-remaining": "29", "x-ratelimit-reset": "60"}
OVER = RateLimitResult(allowed=False, limit=30, remaining=0, reset_s=17)
PAGE = "https://app.example"
MANY_OBJECTS = b"[[],[],[]]"
MANY_KEYS = b'{"a":0,"b":0,"c":0,"d":0}'
ROWS: list[list[Any]] = [
    ["/a, b", 3, None, True, "2025-03-10T12:00:00.250Z", "5"],
    ["", 2.5, 1.0, False, None, 5],
]
RESULT = QueryResult(
    names=("path", "n", "mean", "is_bot", "time", "properties.k"),
    kinds=(
        OutputKind.TEXT,
        OutputKind.NUMBER,
        OutputKind.NUMBER,
        OutputKind.BOOLEAN,
        OutputKind.DATETIME,
        OutputKind.JSON,
    ),
    rows=ROWS,
    limit=2,
    truncated=True,
    execution_ms=7.25,
)


def send_query(
    harness: Harness, website: str = PRIVATE, key: str | None = READER_KEY, **options: Any
) -> Any:
    headers = {**(bearer(key) if key else {}), **options.pop("headers", {})}
    body = options.pop("body", b"{}")
    return harness.call(
        "POST", PATH, body, query=f"website_id={website}", headers=headers, **options
    )


def test_result_is_complete() -> None:
    harness = Harness(result=RESULT)

    response = send_query(harness, body=b'{"query":1}')

    assert status_and_body(response) == (
        200,
        {
            "success": True,
            "data": [dict(zip(RESULT.names, row, strict=True)) for row in ROWS],
            "meta": {
                "rowCount": 2,
                "executionTime": 7.25,
                "limit": 2,
                "truncated": True,
                **NOTHING_READ,
            },
            "requestId": REQUEST_ID,
        },
    )
    length = {"content-length": str(len(response.body))}
    assert response.headers == {**JSON_HEADERS, **RATE, **length}
    assert harness.queries.requests == [(PRIVATE, b'{"query":1}')]
    assert harness.limiter.callers == ["key:key_hr_reader"]


# Each request fails its own check and all later ones; the response reports the first.
ORDER: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "size": (
        {"body": TOO_LONG, "key": None, "website": ""},
        413,
        "Payload too large",
        "PAYLOAD_TOO_LARGE",
    ),
    "credentials": (
        {"key": None, "website": "", "headers": {"Content-Type": "image/gif"}},
        401,
        "Authentication required",
        "UNAUTHORIZED",
    ),
    "key": (
        {"key": "hr_unknown", "website": "", "headers": {"Content-Type": "image/gif"}},
        401,
        "Invalid API key",
        "INVALID_API_KEY",
    ),
    "scope": (
        {"key": WRITER_KEY, "website": "", "headers": {"Content-Type": "image/gif"}},
        403,
        "API key missing read:data scope",
        "MISSING_SCOPE",
    ),
    "website_id": (
        {"website": "", "headers": {"Content-Type": "image/gif"}},
        400,
        "website_id is required",
        "MISSING_WEBSITE_ID",
    ),
    "website": (
        {"website": "web_x", "headers": {"Content-Type": "image/gif"}},
        404,
        "Website not found",
        "WEBSITE_NOT_FOUND",
    ),
    "type": (
        {"headers": {"Content-Type": "image/gif"}},
        415,
        'Unsupported media type "image/gif": send application/json',
        "UNSUPPORTED_MEDIA_TYPE",
    ),
    "encoding": (
        {"headers": {"Content-Encoding": "gzip, gzip"}},
        415,
        'Unsupported content encoding "gzip, gzip": send one of gzip, deflate, br, zstd, identity',
        "UNSUPPORTED_ENCODING",
    ),
    "damage": (
        {"headers": {"Content-Encoding": "gzip"}},
        400,
        "Invalid request body",
        "INVALID_BODY",
    ),
    "decoded size": (
        {"body": gzip.compress(TOO_LONG), "headers": {"Content-Encoding": "gzip"}},
        413,
        "Payload too large",
        "PAYLOAD_TOO_LARGE",
    ),
    "objects": ({"body": MANY_OBJECTS}, 413, "Payload too large", "PAYLOAD_TOO_LARGE"),
    "keys": ({"body": MANY_KEYS}, 413, "Payload too large", "PAYLOAD_TOO_LARGE"),
}


@pytest.mark.parametrize(("options", "status", "message", "code"), ORDER.values(), ids=list(ORDER))
def test_first_error_is_reported(
    options: dict[str, Any], status: int, message: str, code: str
) -> None:
    harness = Harness(SMALL)

    assert status_and_body(send_query(harness, **options)) == (status, query_error(message, code))
    assert harness.queries.requests == []


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "HEAD"])
def test_method_comes_before_everything_else(method: str) -> None:
    response = Harness(SMALL).call(method, PATH, TOO_LONG)

    assert status_and_body(response) == (
        405,
        query_error("Method not allowed", "METHOD_NOT_ALLOWED"),
    )
    assert response.headers["allow"] == "POST, OPTIONS"


READABLE: dict[str, tuple[str, str | None, int]] = {
    "its organization's key reads a private website": (PRIVATE, READER_KEY, 200),
    "its organization's key reads a public website": (PUBLIC, READER_KEY, 200),
    "any key reads a public website": (PUBLIC, FOREIGN_KEY, 200),
    "a public website needs no key": (PUBLIC, None, 200),
    "another organization's key does not know a private website": (PRIVATE, FOREIGN_KEY, 404),
    "a private website needs a key": (PRIVATE, None, 401),
    "an unknown website needs a key": ("web_x", None, 401),
    "a broken key is noticed at a public website": (PUBLIC, "hr_unknown", 401),
    "an empty key is a broken one": (PUBLIC, " ", 401),
    "a key without the scope does not even read a public website": (PUBLIC, WRITER_KEY, 403),
}


@pytest.mark.parametrize(("website", "key", "status"), READABLE.values(), ids=list(READABLE))
def test_read_access(website: str, key: str | None, status: int) -> None:
    assert send_query(Harness(), website, key).status == status


REPEATED_KEYS = {
    "two Authorization": [("Authorization", f"Bearer {READER_KEY}")] * 2,
    "two x-api-key": [("x-api-key", READER_KEY)] * 2,
    "Authorization and two x-api-key": [
        ("Authorization", f"Bearer {READER_KEY}"),
        *[("x-api-key", READER_KEY)] * 2,
    ],
}


@pytest.mark.parametrize("headers", REPEATED_KEYS.values(), ids=list(REPEATED_KEYS))
@pytest.mark.parametrize("website", [PRIVATE, PUBLIC])
def test_repeated_key_field_is_an_invalid_key(website: str, headers: list[tuple[str, str]]) -> None:
    response = Harness().call("POST", PATH, b"{}", query=f"website_id={website}", headers=headers)

    assert status_and_body(response) == (401, query_error("Invalid API key", "INVALID_API_KEY"))


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (f"website_id=&website_id={PRIVATE}&website_id=web_x", 200),
        (f"website_id=web_x&website_id={PRIVATE}", 404),
        ("website_id=&website_id=", 400),
    ],
)
def test_first_website_id_that_is_not_empty_counts(query: str, status: int) -> None:
    response = Harness().call("POST", PATH, b"{}", query=query, headers=bearer(READER_KEY))

    assert response.status == status


def test_private_and_unknown_website_are_indistinguishable() -> None:
    foreign, unknown = (
        send_query(Harness(), PRIVATE, FOREIGN_KEY),
        send_query(Harness(), "web_x", FOREIGN_KEY),
    )

    assert (foreign.status, foreign.body) == (unknown.status, unknown.body)


def test_new_key_and_website_are_found_after_one_refresh() -> None:
    harness = Harness()
    harness.tenancy.snapshot = type(make_tenancy())(0, {}, {}, {})

    assert send_query(harness).status == 200


@pytest.mark.parametrize(
    ("website", "key", "status"),
    [
        pytest.param(PRIVATE, READER_KEY, 200, id="known key and website"),
        pytest.param(PUBLIC, None, 200, id="known public website"),
        pytest.param(PRIVATE, WRITER_KEY, 403, id="known key without the scope"),
        pytest.param(PRIVATE, "hr_unknown", 503, id="unknown key"),
        pytest.param("web_x", READER_KEY, 503, id="unknown website"),
        pytest.param("web_x", None, 503, id="unknown website without a key"),
    ],
)
def test_what_is_unknown_is_503_while_the_directory_cannot_be_read(
    website: str, key: str | None, status: int
) -> None:
    harness = Harness()
    harness.tenancy.failure = DirectoryUnavailable("the directory cannot be read")

    response = send_query(harness, website, key)

    assert response.status == status
    if status == 503:
        assert response.json == query_error("Service unavailable", "UNAVAILABLE")
        assert response.headers["retry-after"] == "5"


COUNTED: dict[str, tuple[dict[str, Any], int]] = {
    "accepted": ({}, 200),
    "no website": ({"website": ""}, 400),
    "unknown website": ({"website": "web_x"}, 404),
    "type of the body": ({"headers": {"Content-Type": "image/gif"}}, 415),
}


@pytest.mark.parametrize(("options", "status"), COUNTED.values(), ids=list(COUNTED))
def test_every_response_to_a_known_client_counts_and_has_rate_limit_headers(
    options: dict[str, Any], status: int
) -> None:
    harness = Harness()

    response = send_query(harness, **options)

    assert response.status == status
    assert RATE.items() <= response.headers.items()
    assert len(harness.limiter.callers) == 1


def test_unauthenticated_request_does_not_count() -> None:
    harness = Harness()

    response = send_query(harness, key="hr_unknown")

    assert (response.status, harness.limiter.callers) == (401, [])
    assert not RATE.keys() & response.headers.keys()


@pytest.mark.parametrize("website", [PRIVATE, "web_x", ""])
def test_over_the_limit_is_429(website: str) -> None:
    harness = Harness()
    harness.limiter.verdict = OVER

    response = send_query(harness, website)

    assert status_and_body(response) == (429, query_error("Rate limit exceeded", "RATE_LIMITED"))
    assert response.headers == {
        **JSON_HEADERS,
        "content-length": str(len(response.body)),
        "retry-after": "17",
        "x-ratelimit-limit": "30",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "17",
    }


def test_missing_scope_comes_before_the_rate_limit_and_does_not_count() -> None:
    harness = Harness()
    harness.limiter.verdict = OVER

    response = send_query(harness, key=WRITER_KEY)

    assert (response.status, harness.limiter.callers) == (403, [])
    unused = {
        "x-ratelimit-limit": "30",
        "x-ratelimit-remaining": "30",
        "x-ratelimit-reset": "0",
    }
    assert unused.items() <= response.headers.items()


def test_without_a_key_website_and_address_are_limited_together() -> None:
    harness = Harness()

    for address in ("198.51.100.7", "2001:db8::1", "2001:db8::2:0:0:1"):
        send_query(harness, PUBLIC, None, client=(address, 1))

    assert harness.limiter.callers == [
        "website:web_public:198.51.100.7",
        "website:web_public:2001:db8::/64",
        "website:web_public:2001:db8::/64",
    ]


FAILURES: dict[str, tuple[Exception, int, str, str]] = {
    "query": (
        InvalidQuery(QueryErrorCode.INVALID_COLUMN, ' "pth"'),
        400,
        'Invalid column "pth"',
        "INVALID_COLUMN",
    ),
    "deadline": (QueryTimedOut(), 504, "Query timed out", "QUERY_TIMEOUT"),
    "memory": (QueryTooLarge(), 422, "Query too large", "QUERY_TOO_LARGE"),
    "engine": (StoreUnavailable("away"), 503, "Service unavailable", "UNAVAILABLE"),
    "bug": (ZeroDivisionError(), 500, "Internal server error", "INTERNAL"),
}


@pytest.mark.parametrize(
    ("error", "status", "message", "code"), FAILURES.values(), ids=list(FAILURES)
)
@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
def test_error_is_json_for_any_accept_header(
    error: Exception, status: int, message: str, code: str, accept: str
) -> None:
    harness = Harness()
    harness.queries = FakeQueryService(error)

    response = send_query(harness, headers={"Accept": accept})

    assert status_and_body(response) == (status, query_error(message, code))
    assert response.headers.get("retry-after") == ("5" if status == 503 else None)


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\ttab", "\rreturn")
PLAIN = ("a=1", " =1", "", "'=1", "1-1", "ä")


@pytest.mark.parametrize("csv_text", ["exact", "escaped"])
def test_csv_escapes_formulas_where_the_setting_says_so(
    csv_text: Literal["exact", "escaped"],
) -> None:
    texts = (*FORMULAS, *PLAIN)
    result = QueryResult(
        ("=name", "value"),
        (OutputKind.TEXT, OutputKind.NUMBER),
        [(text, -1.5) for text in texts],
        limit=1000,
        truncated=False,
        execution_ms=1.5,
    )
    harness = Harness(Settings(query_csv_text=csv_text), result)

    response = send_query(harness, headers={"Accept": "text/csv"})

    prefix = "'" if csv_text == "escaped" else ""
    rows = list(csv.reader(io.StringIO(response.body.decode(), newline="")))
    assert rows == [
        [f"{prefix}=name", "value"],
        *([f"{prefix}{text}", "-1.5"] for text in FORMULAS),
        *([text, "-1.5"] for text in PLAIN),
    ]


def test_csv_is_exact() -> None:
    response = send_query(Harness(result=RESULT), headers={"Accept": "text/csv"})

    assert response.body.decode() == (
        "path,n,mean,is_bot,time,properties.k\r\n"
        '"/a, b",3,,true,2025-03-10T12:00:00.250Z,5\r\n'
        ",2.5,1.0,false,,5\r\n"
    )
    assert response.headers == {
        "content-type": "text/csv; charset=utf-8; header=present",
        "content-length": str(len(response.body)),
        "x-row-count": "2",
        "x-truncated": "true",
        "x-request-id": REQUEST_ID,
        **RATE,
    }


JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
NEGOTIATED = {
    f"{CSV};q=0.5, {JSON}": JSON,
    f"{JSON};q=0.8, {CSV};q=0.9": CSV,
    f"{JSON};q=0.8,{CSV}; q=0.9": CSV,
    f"{JSON}, {CSV};q=1.0": JSON,
    f"{CSV};q=0, {JSON};q=0.001": JSON,
    f"{CSV};q=0": JSON,
    f"{CSV};q=0, */*;q=0.1": JSON,
    "text/*;q=0.3, application/*;q=0.2": CSV,
    f"text/*;q=0.9, {CSV};q=0.1, {JSON};q=0.5": JSON,
    f"{CSV};q=0.5, {ARROW};q=0.6": ARROW,
    f"{ARROW};q=0.5, {CSV};Q=0.6": CSV,
    "text/html;q=1, image/png": JSON,
}


@pytest.mark.parametrize(("accept", "media_type"), NEGOTIATED.items())
def test_format_with_the_highest_q_value_is_sent(accept: str, media_type: str) -> None:
    response = send_query(Harness(result=RESULT), headers={"Accept": accept})

    assert (response.status, response.headers["content-type"].partition(";")[0]) == (
        200,
        media_type,
    )
    counts = {"x-row-count": "2", "x-truncated": "true"}
    found = {name: response.headers[name] for name in counts if name in response.headers}
    assert found == ({} if media_type == JSON else counts)


UNUSUAL_NAMES = (
    "n",
    "",
    "é \u2028",
    "a.b",
    "self",
    "c0",
    'say "x"',
    "back\\slash",
    "line\n",
    "\x7f",
)


@pytest.mark.parametrize("name", UNUSUAL_NAMES, ids=repr)
def test_json_has_outputs_of_any_name(name: str) -> None:
    result = QueryResult(
        ("c1", name), (OutputKind.TEXT, OutputKind.NUMBER), [["a", 1], [None, 2.5]], 2, False, 1
    )

    response = send_query(Harness(result=result))

    assert msgspec.json.decode(response.body)["data"] == [
        {"c1": "a", name: 1},
        {"c1": None, name: 2.5},
    ]


ARROW_TYPES = {
    "path": DataType.utf8(),
    "n": DataType.float64(),
    "mean": DataType.float64(),
    "is_bot": DataType.bool(),
    "time": DataType.timestamp("ms", tz="UTC"),
    "properties.k": DataType.utf8(),
}


@pytest.mark.parametrize("count", [2, 0], ids=["rows", "no rows"])
def test_arrow_columns_have_types_that_do_not_depend_on_their_values(count: int) -> None:
    result = QueryResult(
        RESULT.names, RESULT.kinds, ROWS[:count], limit=2, truncated=False, execution_ms=1
    )

    response = send_query(
        Harness(result=result), headers={"Accept": "application/vnd.apache.arrow.stream"}
    )

    table: Any = read_ipc_stream(response.body).read_all()
    types = {field.name: field.type for field in table.schema}
    assert (response.status, table.num_rows, types) == (200, count, ARROW_TYPES)
    assert (response.headers["x-row-count"], response.headers["x-truncated"]) == (
        str(count),
        "false",
    )


def test_arrow_has_the_values_of_the_result() -> None:
    response = send_query(
        Harness(result=RESULT), headers={"Accept": "application/vnd.apache.arrow.stream"}
    )

    table: Any = read_ipc_stream(response.body).read_all()
    timestamps = table.column("time").cast(DataType.int64()).to_pylist()
    columns = {name: table.column(name).to_pylist() for name in RESULT.names if name != "time"}
    assert timestamps == [1_741_608_000_250, None]
    assert columns == {
        "path": ["/a, b", ""],
        "n": [3.0, 2.5],
        "mean": [None, 1.0],
        "is_bot": [True, False],
        "properties.k": ['"5"', "5"],
    }
    assert table.schema.field("properties.k").metadata_str == {"ARROW:extension:name": "arrow.json"}


def test_client_disconnect_cancels_its_query() -> None:
    harness = Harness()
    harness.queries = FakeQueryService(outcome=FakeQueryService.never)
    sent: list[Message] = []

    async def disconnect() -> None:
        messages: list[Message] = [
            {"type": "http.request", "body": b"{}"},
            {"type": "http.disconnect"},
        ]

        async def receive() -> Message:
            return messages.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        headers = bearer(READER_KEY).items()
        scope = make_scope("POST", PATH, f"website_id={PRIVATE}", headers)
        await harness.app()(scope, receive, send)

    asyncio.run(disconnect())

    assert (sent, harness.queries.was_cancelled.is_set()) == ([], True)
    assert [(line["endpoint"], line["status"]) for line in harness.lines] == [("query", 499)]


PREFLIGHT = {
    "access-control-allow-methods": "POST, OPTIONS",
    "access-control-allow-headers": (
        "Accept, Accept-Language, Authorization, Content-Encoding, Content-Language, Content-Type,"
        " If-None-Match, Last-Event-ID, X-API-Key"
    ),
    "access-control-max-age": "86400",
}
EXPOSED = {
    "access-control-allow-origin": PAGE,
    "access-control-expose-headers": (
        "X-Request-Id, Retry-After, ETag, X-RateLimit-Limit, X-RateLimit-Remaining,"
        " X-RateLimit-Reset, X-Row-Count, X-Truncated"
    ),
    "vary": "Origin",
}
PREFLIGHTS: dict[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "configured": ((PAGE,), {**PREFLIGHT, **EXPOSED}),
    "configured with a slash": (("HTTPS://App.example/",), {**PREFLIGHT, **EXPOSED}),
    "configured with the default port": (
        ("https://app.example:443",),
        {**PREFLIGHT, **EXPOSED},
    ),
    "configured with another port": (("https://app.example:80",), {"vary": "Origin"}),
    "not configured": ((), {"vary": "Origin"}),
    "another one configured": (("https://other.example",), {"vary": "Origin"}),
}


@pytest.mark.parametrize(("origins", "expected"), PREFLIGHTS.values(), ids=list(PREFLIGHTS))
def test_preflight_allows_configured_origins_only(
    origins: tuple[str, ...], expected: Mapping[str, str]
) -> None:
    response = Harness(Settings(query_origins=origins)).call(
        "OPTIONS", PATH, headers={"Origin": PAGE}
    )

    assert (response.status, response.body) == (204, b"")
    assert response.headers == {"x-request-id": REQUEST_ID, "allow": "POST, OPTIONS", **expected}


def test_response_to_a_configured_origin_has_cors_headers() -> None:
    harness = Harness(Settings(query_origins=(PAGE,)))

    rejected = send_query(harness, key=None, headers={"Origin": PAGE})

    assert rejected.status == 401
    assert EXPOSED.items() <= rejected.headers.items()


def test_response_to_another_origin_has_no_cors_headers() -> None:
    response = send_query(Harness(), headers={"Origin": PAGE})

    assert response.status == 200
    assert "access-control-allow-origin" not in response.headers


def test_empty_origin_counts_as_absent() -> None:
    harness = Harness(Settings(query_origins=(PAGE,)))

    response = send_query(harness, headers={"Origin": ""})

    length = {"content-length": str(len(response.body))}
    assert (response.status, response.headers) == (200, {**JSON_HEADERS, **RATE, **length})
    preflights = [
        harness.call("OPTIONS", PATH, headers=headers)
        for headers in (dict[str, str](), {"Origin": ""})
    ]
    assert preflights[0] == preflights[1]


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/query", "/v1/query/custom/", "/v1/x"])
def test_unknown_path_below_v1_has_the_envelope_of_the_query(path: str) -> None:
    assert status_and_body(Harness().call("GET", path)) == (
        404,
        query_error("Not found", "NOT_FOUND"),
    )


def test_expired_key_is_invalid() -> None:
    harness = Harness()
    harness.tenancy.snapshot = harness.tenancy.newest = expired()

    assert status_and_body(send_query(harness)) == (
        401,
        query_error("Invalid API key", "INVALID_API_KEY"),
    )


def expired() -> Any:
    tenancy = make_tenancy()
    keys = {
        secret: msgspec.structs.replace(key, expires_ms=NOW_MS)
        for secret, key in tenancy.keys.items()
    }
    return msgspec.structs.replace(tenancy, keys=keys)
