"""Middleware reports page views, requests and errors with the visitor of the request."""

from collections.abc import AsyncIterator, Callable, Iterator
from io import BytesIO
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request as WebRequest
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from headrace_client import AsyncHeadrace, Headrace
from headrace_client.testing import FakeHeadrace
from headrace_client.web import HeadraceASGI, HeadraceWSGI, Request, RequestOptions

HEADERS = {
    "User-Agent": "Firefox",
    "Referer": "https://search.example/",
    "X-Forwarded-For": "203.0.113.7, 198.51.100.1",
    "Cookie": "did=anon_1; theme=dark",
}
VISITOR = {"ip": "198.51.100.9", "userAgent": "Firefox"}


def sent(server: FakeHeadrace, endpoint: str = "/track") -> list[dict[str, Any]]:
    """Return the items of an endpoint without id, time and duration."""
    items = [dict(one) for one in server.items(endpoint)]
    for item in items:
        del item["eventId"], item["timestamp"]
        item.get("properties", {}).pop("duration_ms", None)
        item.pop("stack", None)
    return items


def anonymous_id(request: Request) -> dict[str, str | None]:
    return {"anonymous_id": request.cookie("did")}


async def page(_: WebRequest) -> Response:
    return HTMLResponse("<p>Prices</p>")


async def order(request: WebRequest) -> Response:
    client: AsyncHeadrace = request.app.state.client
    await client.track("purchase", {"value": 120})
    return JSONResponse({})


async def stream(_: WebRequest) -> Response:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"<p>"
        raise ValueError("broken")

    return StreamingResponse(chunks(), media_type="text/html")


async def failing(_: WebRequest) -> Response:
    raise ValueError("broken")


async def call_asgi(server: FakeHeadrace, options: RequestOptions, *calls: str) -> None:
    """Send calls such as "GET /prices" to an application with the middleware."""
    async with AsyncHeadrace(server.url, "key", outbox=None) as client:
        app = Starlette(
            routes=[
                Route("/prices/{name}", page),
                Route("/orders", order, methods=["POST"]),
                Route("/failing", failing),
                Route("/stream", stream),
            ],
            middleware=[Middleware(HeadraceASGI, client, options)],
        )
        app.state.client = client
        transport = httpx.ASGITransport(
            app, raise_app_exceptions=False, client=("198.51.100.9", 1234)
        )
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as browser:
            for call in calls:
                method, _, path = call.partition(" ")
                await browser.request(method, path, headers=HEADERS)
        assert await client.flush()


async def test_page_is_reported_as_a_view_with_its_visitor(server: FakeHeadrace) -> None:
    await call_asgi(server, RequestOptions(), "GET /prices/a%20b?x=1", "HEAD /prices/a", "GET /no")
    referrer = {"referrer": "https://search.example/"}
    view = {"name": "screen_view", "path": "/prices/a%20b", "properties": referrer}
    assert sent(server) == [{**view, **VISITOR}]


async def test_items_of_a_request_get_its_visitor(server: FakeHeadrace) -> None:
    await call_asgi(server, RequestOptions(visitor=anonymous_id), "POST /orders")
    purchase = {"name": "purchase", "properties": {"value": 120}, "path": "/orders"}
    assert sent(server) == [{**purchase, "anonymousId": "anon_1", **VISITOR}]


async def test_exception_is_reported_with_the_path(server: FakeHeadrace) -> None:
    await call_asgi(server, RequestOptions(), "GET /failing")
    (error,) = sent(server, "/errors")
    fields = {name: error[name] for name in ("message", "errorType", "path", "ip")}
    expected = {"message": "broken", "errorType": "ValueError", "path": "/failing"}
    assert fields == {**expected, "ip": "198.51.100.9"}


async def test_page_that_breaks_off_is_reported_with_its_exception(server: FakeHeadrace) -> None:
    await call_asgi(server, RequestOptions(), "GET /stream")
    assert [(one["name"], one["path"]) for one in sent(server)] == [("screen_view", "/stream")]
    assert [one["message"] for one in sent(server, "/errors")] == ["broken"]


async def test_requests_are_reported_with_method_and_status(server: FakeHeadrace) -> None:
    options = RequestOptions(page_views=False, requests=True)
    await call_asgi(server, options, "GET /prices/a", "GET /no", "GET /failing", "GET /stream")
    assert [(one["path"], one["properties"]) for one in sent(server)] == [
        ("/prices/a", {"method": "GET", "status": 200}),
        ("/no", {"method": "GET", "status": 404}),
        ("/failing", {"method": "GET", "status": 500}),
        ("/stream", {"method": "GET", "status": 200}),
    ]


async def test_ids_of_a_visitor_that_the_service_refuses_are_left_out(
    server: FakeHeadrace,
) -> None:
    longest = {"anonymous_id": "x" * 256, "profile_id": "x" * 128}
    longer = {name: f"{value}x" for name, value in longest.items()}
    await call_asgi(server, RequestOptions(visitor=lambda _: longest), "POST /orders")
    await call_asgi(server, RequestOptions(visitor=lambda _: longer), "POST /orders")

    purchase = {"name": "purchase", "properties": {"value": 120}, "path": "/orders", **VISITOR}
    assert sent(server) == [
        {**purchase, "anonymousId": "x" * 256, "profileId": "x" * 128},
        purchase,
    ]


def fail(_: Request) -> Any:
    raise KeyError("in an option")


async def test_option_that_fails_costs_the_visitor_or_the_report_and_no_request(
    server: FakeHeadrace, caplog: pytest.LogCaptureFixture
) -> None:
    await call_asgi(server, RequestOptions(visitor=fail), "POST /orders")
    await call_asgi(server, RequestOptions(is_reported=fail), "GET /prices/a", "POST /orders")

    purchase = {"name": "purchase", "properties": {"value": 120}}
    assert sent(server) == [{**purchase, "path": "/orders", **VISITOR}, purchase]
    assert [one.getMessage() for one in caplog.records if one.exc_info] == [
        "a request is reported without its visitor: visitor failed",
        *["a request is not reported: is_reported failed"] * 2,
    ]


async def test_requests_can_be_left_out(server: FakeHeadrace) -> None:
    options = RequestOptions(is_reported=lambda request: not request.path.endswith("/health"))
    await call_asgi(server, options, "GET /prices/health")
    assert sent(server) == []


@pytest.mark.parametrize(
    ("trusted", "address"),
    [
        ((), "198.51.100.9"),
        (("198.51.100.9",), "198.51.100.1"),
        (("198.51.100.0/24",), "203.0.113.7"),
        (("198.51.100.0/24", "203.0.113.0/24"), "203.0.113.7"),
    ],
    ids=["none", "one", "chain", "all"],
)
async def test_forwarded_address_is_believed_from_trusted_proxies_alone(
    server: FakeHeadrace, trusted: tuple[str, ...], address: str
) -> None:
    await call_asgi(server, RequestOptions(trusted_proxies=trusted), "GET /prices/a")
    assert [one["ip"] for one in sent(server)] == [address]


async def test_forwarded_addresses_may_come_in_several_fields(server: FakeHeadrace) -> None:
    fields = [(b"X-Forwarded-For", b"203.0.113.7"), (b"x-forwarded-for", b"198.51.100.1")]
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/a", "headers": fields}
    scope["client"] = ("198.51.100.9", 1234)

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def receive() -> Any:
        raise AssertionError("the application reads no body")

    async def send(_: Any) -> None:
        """Take the response."""

    async with AsyncHeadrace(server.url, "key", outbox=None) as client:
        options = RequestOptions(requests=True, trusted_proxies=("198.51.100.0/24",))
        await HeadraceASGI(app, client, options)(scope, receive, send)
        assert await client.flush()
    assert [(one["path"], one["ip"]) for one in sent(server)] == [("/a", "203.0.113.7")]


def test_trusted_proxy_that_is_no_address_is_an_error(server: FakeHeadrace) -> None:
    options = RequestOptions(trusted_proxies=("proxy",))
    with (
        Headrace(server.url, "key", outbox=None) as client,
        pytest.raises(ValueError, match="'proxy' does not appear"),
    ):
        HeadraceWSGI(lambda _environ, _start: [], client, options)


def start_response(*_: object) -> Callable[[bytes], object]:
    return len  # takes bytes, as the function of a server does


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("theme=dark; did=anon_1", "anon_1"),
        ('did="a\\073 b"; theme=dark', "a; b"),
        ('prefs={"a": "b"}; did=anon_1', "anon_1"),
        ("cart items=2; did=anon_1; x[0]=1; path=/", "anon_1"),
        ('did="a"b', '"a"b'),
        ("did=a=b==", "a=b=="),
        ("undid=1; did; theme=dark", None),
        ("did=; theme=dark", ""),
    ],
)
def test_cookie_is_read_beside_any_other(header: str, value: str | None) -> None:
    assert Request("GET", "/", {"cookie": header}, "").cookie("did") == value


def call_wsgi(server: FakeHeadrace, options: RequestOptions, path: str, **environ: Any) -> bytes:
    """Send one request to an application with the middleware; return its body."""

    def app(environ: dict[str, Any], start: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/failing":
            raise ValueError("broken")
        client.track("seen")
        start("200 OK", [("Content-Type", "text/html; charset=utf-8")])
        return [b"<p>"]

    variables: dict[str, Any] = {
        f"HTTP_{k.upper().replace('-', '_')}": v for k, v in HEADERS.items()
    }
    variables |= {"PATH_INFO": path, "REMOTE_ADDR": "198.51.100.9"}
    variables.update(environ)
    setup_testing_defaults(variables)
    with Headrace(server.url, "key", outbox=None) as client:
        try:
            return b"".join(HeadraceWSGI(app, client, options)(variables, start_response))
        finally:
            assert client.flush()


def test_wsgi_page_is_reported_as_a_view_with_its_visitor(server: FakeHeadrace) -> None:
    path = "/prices/Größe 1".encode().decode("latin-1")
    body = call_wsgi(server, RequestOptions(visitor=anonymous_id), path, SCRIPT_NAME="/shop")

    visitor = {"path": "/shop/prices/Gr%C3%B6%C3%9Fe%201", "anonymousId": "anon_1", **VISITOR}
    referrer = {"referrer": "https://search.example/"}
    assert body == b"<p>"
    assert sent(server) == [
        {"name": "seen", **visitor},
        {"name": "screen_view", "properties": referrer, **visitor},
    ]


def test_wsgi_exception_is_reported_and_raised(server: FakeHeadrace) -> None:
    with pytest.raises(ValueError, match="broken"):
        call_wsgi(server, RequestOptions(requests=True), "/failing")
    assert [(one["path"], one["properties"]) for one in sent(server)] == [
        ("/failing", {"method": "GET", "status": 500})
    ]
    assert [(one["message"], one["path"]) for one in sent(server, "/errors")] == [
        ("broken", "/failing")
    ]


def test_wsgi_body_that_is_made_while_it_is_sent_belongs_to_its_request(
    server: FakeHeadrace,
) -> None:
    closed: list[str] = []

    def app(_: dict[str, Any], start: Any) -> Iterator[bytes]:
        try:
            start("200 OK", [("Content-Type", "text/plain")])
            yield b"a"
            client.track("seen")
            raise ValueError("broken")
        finally:
            closed.append("app")

    environ: dict[str, Any] = {"PATH_INFO": "/stream", "REMOTE_ADDR": "198.51.100.9"}
    environ["HTTP_USER_AGENT"] = "Firefox"
    setup_testing_defaults(environ)
    with Headrace(server.url, "key", outbox=None) as client:
        body = HeadraceWSGI(app, client)(environ, start_response)
        with pytest.raises(ValueError, match="broken"):
            list(body)
        client.track("outside")
        assert client.flush()

    (error,) = sent(server, "/errors")
    visitor = {"path": "/stream", **VISITOR}
    assert sent(server) == [{"name": "seen", **visitor}, {"name": "outside"}]
    assert (error["message"], {name: error[name] for name in visitor}) == ("broken", visitor)
    assert closed == ["app"]


def test_wsgi_body_is_closed_and_complete_ones_are_left_alone(server: FakeHeadrace) -> None:
    class Body:
        is_closed = False

        def __iter__(self) -> Iterator[bytes]:
            return iter((b"a", b"", b"b"))

        def close(self) -> None:
            self.is_closed = True

    def answer(body: Any) -> Any:
        environ: dict[str, Any] = {"wsgi.file_wrapper": FileWrapper}
        setup_testing_defaults(environ)

        def app(*_: Any) -> Any:
            return body

        with Headrace(server.url, "key", outbox=None) as client:
            return HeadraceWSGI(app, client)(environ, start_response)

    body, file, made = Body(), FileWrapper(BytesIO(b"file")), [b"a"]
    chunks = answer(body)
    assert list(chunks) == [b"a", b"", b"b"]
    chunks.close()
    assert body.is_closed
    assert answer(file) is file
    assert answer(made) is made


def test_request_goes_on_where_nothing_can_be_reported(
    server: FakeHeadrace, caplog: pytest.LogCaptureFixture
) -> None:
    client = Headrace(server.url, "key", outbox=None)
    client.close()

    def app(_: dict[str, Any], start: Any) -> list[bytes]:
        start("200 OK", [("Content-Type", "text/html")])
        return [b"<p>"]

    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    assert list(HeadraceWSGI(app, client)(environ, start_response)) == [b"<p>"]
    assert [one.getMessage() for one in caplog.records] == [
        "a request is not reported: the client was closed"
    ]
