"""A server for the tests of programs that use the client: it keeps items in memory, once each.

with FakeHeadrace() as server, Headrace(server.url, "test-key", outbox=None) as client:
    client.track("signup")
    client.flush()
    assert server.event_names() == ["signup"]
"""

from __future__ import annotations

import gzip
import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from typing_extensions import Self

Json = Any
_TYPES = {"/track": "custom_event", "/vitals": "web_vitals", "/errors": "error"}
_REQUIRED: Mapping[str, Sequence[str]] = {
    "/track": ("name",),
    "/vitals": ("timestamp", "path", "metricName", "metricValue"),
    "/errors": ("timestamp", "path", "message"),
    "/identify": ("profileId",),
}
_QUERY_PATHS = frozenset(f"/v1/query/{kind}" for kind in ("custom", "funnel", "retention"))
_MAX_NAME = 256


class Received(NamedTuple):
    """One item that was stored: its endpoint, such as `/track`, and its fields."""

    endpoint: str
    item: Mapping[str, Json]


class Reply(NamedTuple):
    """A response that replaces the server's own. Status 0 closes the connection without one."""

    status: int
    body: Json = None
    headers: Mapping[str, str] = {}
    stores: bool = False


class FakeHeadrace:
    """A server on this machine that answers as Headrace does. Use it as a context manager."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stored: dict[tuple[str, str, str], Received] = {}
        self._replies: deque[Reply] = deque()
        self._rows: list[dict[str, Json]] = []
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
        """Answer each query with these rows."""
        self._rows = list(rows)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def respond(self, path: str, has_credentials: bool, content: bytes) -> Reply:
        """Return the response to a request."""
        try:
            body: Json = json.loads(content)
        except ValueError:
            return _error(400, "Invalid request body", "INVALID_BODY")
        with self._lock:
            if path in _QUERY_PATHS:
                self.queries.append(body)
            items = _as_list(body)
            self.requests.append((path, len(items)))
            reply = self._replies.popleft() if self._replies else None
            if reply is not None and not reply.stores:
                return reply
            return (
                self._accept(path, items, has_credentials)
                if reply is None
                else self._keep(path, items, reply)
            )

    def _accept(self, path: str, items: Sequence[Json], has_credentials: bool) -> Reply:
        if path in _QUERY_PATHS:
            meta = {"rowCount": len(self._rows)}
            return Reply(200, {"success": True, "data": self._rows, "meta": meta})
        if path not in _REQUIRED:
            return _error(404, "Not found", "NOT_FOUND")
        errors = list(_field_errors(path, items))
        if errors:
            return _error(400, "Invalid request body", "INVALID_BODY", errors)
        if not has_credentials and not all(one.get("websiteId") for one in items):
            return _error(401, "API key or website_id required", "UNAUTHORIZED")
        success = {"status": "success", "type": _TYPES.get(path, "identify")}
        if path in _TYPES:
            success["count"] = len(items)  # type: ignore[assignment]  # a JSON object
        return self._keep(path, items, Reply(200, success))

    def _keep(self, path: str, items: Sequence[Json], reply: Reply) -> Reply:
        namespace = path if path in {"/vitals", "/errors"} else "events"
        for item in items:
            event_id = item.get("eventId") or f"without id {len(self._stored)}"
            key = (namespace, str(item.get("websiteId", "")), event_id)
            self._stored.setdefault(key, Received(path, item))
        return reply


def _as_list(body: Json) -> list[Json]:
    return list(body) if isinstance(body, list) else [body]  # pyright: ignore[reportUnknownArgumentType]  # JSON


def _field_errors(path: str, items: Sequence[Json]) -> Iterator[dict[str, Json]]:
    for index, item in enumerate(items):
        for field in _REQUIRED[path]:
            if item.get(field) is None:
                yield {"index": index, "field": field, "message": "is required"}
        name = item.get("name")
        if path == "/track" and isinstance(name, str) and not 0 < len(name) <= _MAX_NAME:
            message = f"must have 1 to {_MAX_NAME} characters"
            yield {"index": index, "field": "name", "message": message}


def _error(
    status: int, message: str, code: str, errors: Sequence[Mapping[str, Json]] = ()
) -> Reply:
    body: dict[str, Json] = {"status": "error", "message": message, "code": code}
    body["requestId"] = "fake"
    return Reply(status, {**body, "errors": errors} if errors else body)


def _handler_for(server: FakeHeadrace) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Content-Encoding") == "gzip":
                content = gzip.decompress(content)
            target = urlsplit(self.path)
            parameters = parse_qs(target.query)
            has_credentials = bool(
                self.headers.get("Authorization")
                or parameters.get("website_id")
                or parameters.get("client_id")
            )
            reply = server.respond(target.path, has_credentials, content)
            if reply.status == 0:
                self.close_connection = True
                return
            body = json.dumps(reply.body or {}).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Print nothing."""

    return Handler
