"""The query endpoint over twins: its order of checks, its limits, its formats, its end."""

import asyncio
import gzip
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from arro3.core import DataType
from arro3.io import read_ipc_stream
from starlette.types import Message

from headrace.base.errors import (
    InvalidQuery,
    QueryFault,
    QueryTimedOut,
    QueryTooLarge,
    StoreUnavailable,
)
from headrace.base.settings import Settings
from headrace.model.plan import OutputKind
from headrace.ports.rate_limiter import RateVerdict
from headrace.query.result_values import QueryAnswer
from tests.contract.http_twins import (
    JSON_REPLY,
    NOW_MS,
    PRIVATE,
    PUBLIC,
    READER,
    REQUEST_ID,
    STRANGER,
    WRITER,
    TwinQueries,
    World,
    bearer,
    make_scope,
    make_tenancy,
    query_error,
    told,
)

PATH = "/v1/query/custom"
SMALL = Settings(max_query_bytes=100)
TOO_LONG = b"x" * 101
RATE = {"x-ratelimit-limit": "30", "x-ratelimit-remaining": "29", "x-ratelimit-reset": "60"}
OVER = RateVerdict(allowed=False, limit=30, remaining=0, reset_s=17)
PAGE = "https://app.example"
ROWS: list[list[Any]] = [
    ["/a, b", 3, None, True, "2025-03-10T12:00:00.250Z", "5"],
    ["", 2.5, 1.0, False, None, 5],
]
ANSWER = QueryAnswer(
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


def ask(world: World, website: str = PRIVATE, key: str | None = READER, **options: Any) -> Any:
    headers = {**(bearer(key) if key else {}), **options.pop("headers", {})}
    body = options.pop("body", b"{}")
    return world.call("POST", PATH, body, query=f"website_id={website}", headers=headers, **options)


def test_answer_is_told_whole() -> None:
    world = World(answer=ANSWER)

    reply = ask(world, body=b'{"query":1}')

    assert told(reply) == (
        200,
        {
            "success": True,
            "data": [dict(zip(ANSWER.names, row, strict=True)) for row in ROWS],
            "meta": {"rowCount": 2, "executionTime": 7.25, "limit": 2, "truncated": True},
            "requestId": REQUEST_ID,
        },
    )
    length = {"content-length": str(len(reply.body))}
    assert reply.headers == {**JSON_REPLY, **RATE, **length}
    assert world.queries.asked == [(PRIVATE, b'{"query":1}')]
    assert world.limiter.callers == ["key:key_hr_reader"]


# Every call breaks all rules from its own on; the one that is told is the first.
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
        {"key": WRITER, "website": "", "headers": {"Content-Type": "image/gif"}},
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
        "Unsupported media type",
        "UNSUPPORTED_MEDIA_TYPE",
    ),
    "encoding": (
        {"headers": {"Content-Encoding": "gzip, gzip"}},
        415,
        "Unsupported content encoding",
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
}


@pytest.mark.parametrize(("call", "status", "message", "code"), ORDER.values(), ids=list(ORDER))
def test_first_broken_rule_is_told(
    call: dict[str, Any], status: int, message: str, code: str
) -> None:
    world = World(SMALL)

    assert told(ask(world, **call)) == (status, query_error(message, code))
    assert world.queries.asked == []


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "HEAD"])
def test_method_comes_before_everything_else(method: str) -> None:
    reply = World(SMALL).call(method, PATH, TOO_LONG)

    assert told(reply) == (405, query_error("Method not allowed", "METHOD_NOT_ALLOWED"))
    assert reply.headers["allow"] == "POST, OPTIONS"


READABLE: dict[str, tuple[str, str | None, int]] = {
    "its organization's key reads a private website": (PRIVATE, READER, 200),
    "its organization's key reads a public website": (PUBLIC, READER, 200),
    "any key reads a public website": (PUBLIC, STRANGER, 200),
    "nobody needs a key for a public website": (PUBLIC, None, 200),
    "another organization's key does not know a private website": (PRIVATE, STRANGER, 404),
    "a private website needs a key": (PRIVATE, None, 401),
    "an unknown website needs a key": ("web_x", None, 401),
    "a broken key is noticed at a public website": (PUBLIC, "hr_unknown", 401),
    "an empty key is a broken one": (PUBLIC, " ", 401),
    "a key without the scope does not even read a public website": (PUBLIC, WRITER, 403),
}


@pytest.mark.parametrize(("website", "key", "status"), READABLE.values(), ids=list(READABLE))
def test_who_may_read(website: str, key: str | None, status: int) -> None:
    assert ask(World(), website, key).status == status


def test_private_and_unknown_website_cannot_be_told_apart() -> None:
    foreign, unknown = ask(World(), PRIVATE, STRANGER), ask(World(), "web_x", STRANGER)

    assert (foreign.status, foreign.body) == (unknown.status, unknown.body)


def test_key_and_website_that_are_new_are_looked_for_once_more() -> None:
    world = World()
    world.tenancy.snapshot = type(make_tenancy())(0, {}, {}, {})

    assert ask(world).status == 200


COUNTED: dict[str, tuple[dict[str, Any], int]] = {
    "accepted": ({}, 200),
    "missing scope": ({"key": WRITER}, 403),
    "no website": ({"website": ""}, 400),
    "unknown website": ({"website": "web_x"}, 404),
    "type of the body": ({"headers": {"Content-Type": "image/gif"}}, 415),
}


@pytest.mark.parametrize(("call", "status"), COUNTED.values(), ids=list(COUNTED))
def test_every_reply_to_a_known_caller_counts_and_tells_the_rate(
    call: dict[str, Any], status: int
) -> None:
    world = World()

    reply = ask(world, **call)

    assert reply.status == status
    assert RATE.items() <= reply.headers.items()
    assert len(world.limiter.callers) == 1


def test_unknown_caller_does_not_count() -> None:
    world = World()

    reply = ask(world, key="hr_unknown")

    assert (reply.status, world.limiter.callers) == (401, [])
    assert not RATE.keys() & reply.headers.keys()


@pytest.mark.parametrize("website", [PRIVATE, "web_x", ""])
def test_over_the_limit_is_429(website: str) -> None:
    world = World()
    world.limiter.verdict = OVER

    reply = ask(world, website)

    assert told(reply) == (429, query_error("Rate limit exceeded", "RATE_LIMITED"))
    assert reply.headers == {
        **JSON_REPLY,
        "content-length": str(len(reply.body)),
        "retry-after": "17",
        "x-ratelimit-limit": "30",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "17",
    }


def test_missing_scope_is_told_before_the_limit() -> None:
    world = World()
    world.limiter.verdict = OVER

    assert ask(world, key=WRITER).status == 403


def test_without_a_key_website_and_address_are_limited_together() -> None:
    world = World()

    ask(world, PUBLIC, None, client=("198.51.100.7", 1))

    assert world.limiter.callers == ["website:web_public:198.51.100.7"]


def test_limiter_that_is_away_lets_calls_through() -> None:
    world = World()
    world.limiter.verdict = None

    reply = ask(world)

    assert reply.status == 200
    assert not RATE.keys() & reply.headers.keys()


FAILURES: dict[str, tuple[Exception, int, str, str]] = {
    "query": (
        InvalidQuery(QueryFault.INVALID_COLUMN, ' "pth"'),
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
def test_failure_is_json_whatever_was_asked_for(
    error: Exception, status: int, message: str, code: str, accept: str
) -> None:
    world = World()
    world.queries = TwinQueries(error)

    reply = ask(world, headers={"Accept": accept})

    assert told(reply) == (status, query_error(message, code))
    assert reply.headers.get("retry-after") == ("5" if status == 503 else None)


def test_csv_is_written_to_the_letter() -> None:
    reply = ask(World(answer=ANSWER), headers={"Accept": "text/csv"})

    assert reply.body.decode() == (
        "path,n,mean,is_bot,time,properties.k\r\n"
        '"/a, b",3,,true,2025-03-10T12:00:00.250Z,5\r\n'
        ",2.5,1.0,false,,5\r\n"
    )
    assert reply.headers == {
        "content-type": "text/csv; charset=utf-8; header=present",
        "content-length": str(len(reply.body)),
        "x-row-count": "2",
        "x-truncated": "true",
        "x-request-id": REQUEST_ID,
        **RATE,
    }


ODD_NAMES = ("n", "", "é \u2028", "a.b", "self", "c0", 'say "x"', "back\\slash", "line\n", "\x7f")


@pytest.mark.parametrize("name", ODD_NAMES, ids=repr)
def test_json_has_outputs_of_any_name(name: str) -> None:
    answer = QueryAnswer(
        ("c1", name), (OutputKind.TEXT, OutputKind.NUMBER), [["a", 1], [None, 2.5]], 2, False, 1
    )

    reply = ask(World(answer=answer))

    assert msgspec.json.decode(reply.body)["data"] == [
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
    answer = QueryAnswer(
        ANSWER.names, ANSWER.kinds, ROWS[:count], limit=2, truncated=False, execution_ms=1
    )

    reply = ask(World(answer=answer), headers={"Accept": "application/vnd.apache.arrow.stream"})

    table: Any = read_ipc_stream(reply.body).read_all()
    types = {field.name: field.type for field in table.schema}
    assert (reply.status, table.num_rows, types) == (200, count, ARROW_TYPES)
    assert (reply.headers["x-row-count"], reply.headers["x-truncated"]) == (str(count), "false")


def test_arrow_has_the_values_of_the_answer() -> None:
    reply = ask(World(answer=ANSWER), headers={"Accept": "application/vnd.apache.arrow.stream"})

    table: Any = read_ipc_stream(reply.body).read_all()
    moments = table.column("time").cast(DataType.int64()).to_pylist()
    columns = {name: table.column(name).to_pylist() for name in ANSWER.names if name != "time"}
    assert moments == [1_741_608_000_250, None]
    assert columns == {
        "path": ["/a, b", ""],
        "n": [3.0, 2.5],
        "mean": [None, 1.0],
        "is_bot": [True, False],
        "properties.k": ['"5"', "5"],
    }
    assert table.schema.field("properties.k").metadata_str == {"ARROW:extension:name": "arrow.json"}


def test_caller_that_hangs_up_ends_its_query() -> None:
    world = World()
    world.queries = TwinQueries(outcome=TwinQueries.never)
    sent: list[Message] = []

    async def hang_up() -> None:
        messages: list[Message] = [
            {"type": "http.request", "body": b"{}"},
            {"type": "http.disconnect"},
        ]

        async def receive() -> Message:
            return messages.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        headers = bearer(READER).items()
        scope = make_scope("POST", PATH, f"website_id={PRIVATE}", headers)
        await world.app()(scope, receive, send)

    asyncio.run(hang_up())

    assert (sent, world.queries.was_cancelled.is_set()) == ([], True)
    assert [(line["endpoint"], line["status"]) for line in world.lines] == [("query", 499)]


PREFLIGHT = {
    "access-control-allow-methods": "POST, OPTIONS",
    "access-control-allow-headers": (
        "Accept, Accept-Language, Authorization, Content-Encoding, Content-Language, Content-Type,"
        " X-API-Key"
    ),
    "access-control-max-age": "86400",
}
EXPOSED = {
    "access-control-allow-origin": PAGE,
    "access-control-expose-headers": (
        "X-Request-Id, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset,"
        " X-Row-Count, X-Truncated"
    ),
    "vary": "Origin",
}
PREFLIGHTS: dict[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "configured": ((PAGE,), {**PREFLIGHT, **EXPOSED}),
    "configured with a slash": (("HTTPS://App.example/",), {**PREFLIGHT, **EXPOSED}),
    "configured with the port that goes without saying": (
        ("https://app.example:443",),
        {**PREFLIGHT, **EXPOSED},
    ),
    "configured with another port": (("https://app.example:80",), {"vary": "Origin"}),
    "not configured": ((), {"vary": "Origin"}),
    "another one configured": (("https://other.example",), {"vary": "Origin"}),
}


@pytest.mark.parametrize(("origins", "expected"), PREFLIGHTS.values(), ids=list(PREFLIGHTS))
def test_preflight_allows_configured_origins_alone(
    origins: tuple[str, ...], expected: Mapping[str, str]
) -> None:
    reply = World(Settings(query_origins=origins)).call("OPTIONS", PATH, headers={"Origin": PAGE})

    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers == {"x-request-id": REQUEST_ID, "allow": "POST, OPTIONS", **expected}


def test_reply_to_a_page_of_a_configured_origin_can_be_read_by_it() -> None:
    world = World(Settings(query_origins=(PAGE,)))

    refused = ask(world, key=None, headers={"Origin": PAGE})

    assert refused.status == 401
    assert EXPOSED.items() <= refused.headers.items()


def test_reply_to_a_page_of_another_origin_cannot_be_read_by_it() -> None:
    reply = ask(World(), headers={"Origin": PAGE})

    assert reply.status == 200
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/query", "/v1/query/custom/", "/v1/x"])
def test_unknown_path_below_v1_has_the_envelope_of_the_query(path: str) -> None:
    assert told(World().call("GET", path)) == (404, query_error("Not found", "NOT_FOUND"))


def test_expired_key_is_invalid() -> None:
    world = World()
    world.tenancy.snapshot = world.tenancy.newest = expired()

    assert told(ask(world)) == (401, query_error("Invalid API key", "INVALID_API_KEY"))


def expired() -> Any:
    tenancy = make_tenancy()
    keys = {
        secret: msgspec.structs.replace(key, expires_ms=NOW_MS)
        for secret, key in tenancy.keys.items()
    }
    return msgspec.structs.replace(tenancy, keys=keys)
