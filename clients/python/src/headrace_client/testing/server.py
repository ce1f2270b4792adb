"""The server of tests: what it keeps, and its responses."""

from __future__ import annotations

import gzip
import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from headrace_client.queries import ARROW, JSON
from headrace_client.testing.arrow import arrow_stream
from headrace_client.testing.validation import FIELDS, as_list, field_errors

if TYPE_CHECKING:
    from typing_extensions import Self

Json = Any
_TYPES = {
    "/track": "custom_event",
    "/vitals": "web_vitals",
    "/errors": "error",
    "/identify": "identify",
}
_QUERY_KINDS = frozenset({"custom", "funnel", "retention", "standard"})
_QUERIES = "/v1/query/"
_MAX_ITEMS = 10_000
_NO_JSON = object()
"""The body of a request that is no JSON."""


class Received(NamedTuple):
    """One item that was stored: its endpoint, such as `/track`, and its fields."""

    endpoint: str
    item: Mapping[str, Json]


class Request(NamedTuple):
    """One request. `website` is that of its address, or ""."""

    path: str
    website: str
    has_key: bool
    accept: str
    content: bytes


class Reply(NamedTuple):
    """A response that replaces the server's own. Status 0 closes the connection without one."""

    status: int
    body: Json = None
    headers: Mapping[str, str] = {}
    stores: bool = False


class FakeHeadrace:
    """A server on this machine that answers as Headrace does. Use it as a context manager.

    It checks items as Headrace does, takes any key and website, and does not run queries:
    `answer_queries` and `answer_standard` set their results.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stored: dict[tuple[str, str, str], Received] = {}
        self._replies: deque[Reply] = deque()
        self._rows: list[dict[str, Json]] = []
        self._standard: dict[str, Json] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self.requests: list[tuple[str, int]] = []
        """The path and the number of items of each request, in order."""
        self.queries: list[Json] = []
        """The bodies of queries, in order."""

    @property
    def url(self) -> str:
        """The address to give to the client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def items(self, endpoint: str = "/track") -> list[Mapping[str, Json]]:
        """Return the items that an endpoint has stored, in order."""
        with self._lock:
            return [one.item for one in self._stored.values() if one.endpoint == endpoint]

    def event_names(self) -> list[str]:
        """Return the names of the events, in order."""
        return [one["name"] for one in self.items()]

    def reply_once(
        self,
        status: int,
        body: Json = None,
        *,
        headers: Mapping[str, str] | None = None,
        stores: bool = False,
        times: int = 1,
    ) -> None:
        """Answer the next requests in this way; `stores` says that their items are stored."""
        with self._lock:
            self._replies.extend([Reply(status, body, headers or {}, stores)] * times)

    def answer_queries(self, rows: Sequence[dict[str, Json]]) -> None:
        """Answer each query with these rows, as Arrow too where pyarrow or polars is installed."""
        self._rows = list(rows)

    def answer_standard(self, results: Mapping[str, Json]) -> None:
        """Answer standard queries with the results of their types; one that has none gets []."""
        self._standard = dict(results)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def respond(self, request: Request) -> Reply:
        """Return the response to a request."""
        with self._lock:
            try:
                body: Json = json.loads(request.content)
            except ValueError:
                body = _NO_JSON
            else:
                self._note(request.path, body)
            reply = self._replies.popleft() if self._replies else None
            if reply is None:
                return self._answer(request, body)
            if reply.stores:
                self._keep(request.path, as_list(body))
            return reply

    def _note(self, path: str, body: Json) -> None:
        if path.startswith(_QUERIES):
            self.queries.append(body)
        self.requests.append((path, len(as_list(body))))

    def _answer(self, request: Request, body: Json) -> Reply:
        if request.path.startswith("/v1/"):
            return self._answer_query(request, body)
        if request.path not in FIELDS:
            return _error(404, "Not found", "NOT_FOUND")
        return self._accept(request, body)

    def _answer_query(self, request: Request, body: Json) -> Reply:
        kind = request.path.removeprefix(_QUERIES)
        if kind not in _QUERY_KINDS:
            return _query_error(404, "Not found", "NOT_FOUND")
        if not request.has_key:
            return _query_error(401, "Authentication required", "UNAUTHORIZED")
        if not request.website:
            return _query_error(400, "website_id is required", "MISSING_WEBSITE_ID")
        if body is _NO_JSON:
            return _query_error(400, "Invalid request body: it is not valid JSON", "INVALID_BODY")
        if kind == "standard":
            results = {one: self._standard.get(one, []) for one in body.get("types", ())}
            return Reply(200, {"success": True, "data": results, "meta": {}})
        return self._answer_rows(request.accept)

    def _answer_rows(self, accept: str) -> Reply:
        stream = arrow_stream(self._rows) if accept == ARROW else None
        if stream is not None:
            return Reply(200, stream, {"Content-Type": ARROW})
        meta = {"rowCount": len(self._rows)}
        return Reply(200, {"success": True, "data": self._rows, "meta": meta})

    def _accept(self, request: Request, body: Json) -> Reply:
        items = as_list(body)
        if len(items) > _MAX_ITEMS:
            return _error(413, "Payload too large", "PAYLOAD_TOO_LARGE")
        errors = [] if body is _NO_JSON else field_errors(request.path, body)
        if errors or body is _NO_JSON:
            return _error(400, "Invalid request body", "INVALID_BODY", errors)
        has_website = request.website or all(one.get("websiteId") for one in items)
        if not (request.has_key or (has_website and items)):
            return _error(401, "API key or website_id required", "UNAUTHORIZED")
        self._keep(request.path, items)
        count = {} if request.path == "/identify" else {"count": len(items)}
        return Reply(200, {"status": "success", "type": _TYPES[request.path], **count})

    def _keep(self, path: str, items: Sequence[Json]) -> None:
        namespace = path if path in {"/vitals", "/errors"} else "events"
        for item in items:
            event_id = item.get("eventId") or f"without id {len(self._stored)}"
            key = (namespace, str(item.get("websiteId", "")), event_id)
            self._stored.setdefault(key, Received(path, item))


def _error(
    status: int, message: str, code: str, errors: Sequence[Mapping[str, Json]] = ()
) -> Reply:
    body: dict[str, Json] = {"status": "error", "message": message, "code": code}
    body["requestId"] = "fake"
    return Reply(status, {**body, "errors": errors} if errors else body)


def _query_error(status: int, message: str, code: str) -> Reply:
    return Reply(status, {"success": False, "error": message, "code": code, "requestId": "fake"})


def _handler_for(server: FakeHeadrace) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            reply = server.respond(self._request())
            if reply.status == 0:
                self.close_connection = True
                return
            is_binary = isinstance(reply.body, bytes)
            body = reply.body if is_binary else json.dumps(reply.body or {}).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": JSON, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _request(self) -> Request:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Content-Encoding") == "gzip":
                content = gzip.decompress(content)
            target = urlsplit(self.path)
            parameters = parse_qs(target.query)
            websites = parameters.get("website_id") or parameters.get("client_id") or [""]
            return Request(
                target.path,
                websites[0],
                has_key=bool(self.headers.get("Authorization")),
                accept=self.headers.get("Accept", ""),
                content=content,
            )

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Print nothing."""

    return Handler
