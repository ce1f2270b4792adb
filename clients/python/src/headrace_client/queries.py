"""Sends queries, and makes rows or Arrow of their responses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import httpx
import msgspec

from headrace_client.context import own_work
from headrace_client.delivery.backoff import retry_after_s
from headrace_client.delivery.forks import ForkAware, prepare_for_forks
from headrace_client.delivery.session import HttpSession, Response, SessionUnavailable
from headrace_client.errors import QueryRefused, QueryUnavailable
from headrace_client.query_bodies import QueryRequest

Row = dict[str, Any]
ArrowTable = Any
PandasFrame = Any
PolarsFrame = Any
"""Of libraries that are optional, for type checkers too."""

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
_FINAL_STATUSES = frozenset(range(400, 500)) - {408, 429}  # of a body that stalled, of the rate


class QueryClient(ForkAware):
    """Sends queries over connections of its own."""

    def __init__(
        self, url: str, authorization: str | None, *, make_http_client: Callable[[], httpx.Client]
    ) -> None:
        self._url = url
        self._authorization = authorization
        self._make_http_client = make_http_client
        self._begin()
        prepare_for_forks(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[HttpSession] | None = []  # None after the end

    def after_fork_in_child(self) -> None:
        """Leave the connections to the parent."""
        self._begin()

    def run(self, request: QueryRequest) -> Result:
        """Return the rows of a query. Raises `QueryFailed`."""
        reply = decode_reply(self.fetch(request, JSON), list)
        return Result(reply, ArrowRequest(lambda: self.fetch(request, ARROW)))

    def run_all(self, request: QueryRequest) -> Mapping[str, Any]:
        """Return the results of standard queries by type. Raises `QueryFailed`."""
        results: Mapping[str, Any] = decode_reply(self.fetch(request, JSON), dict)["data"]
        return results

    def fetch(self, request: QueryRequest, accept: str) -> bytes:
        """Return the response of a query in a format. Raises `QueryFailed`."""
        try:
            with self._session() as session, own_work():
                response = session.post(
                    self._url + request.path,
                    request.body,
                    params={"website_id": request.website},
                    headers=query_headers(self._authorization, accept),
                )
        except (httpx.HTTPError, httpx.InvalidURL, OSError, SessionUnavailable) as error:
            raise QueryUnavailable(f"no response: {error}") from error
        return read_response(response)

    @contextmanager
    def _session(self) -> Generator[HttpSession]:
        """Lend a session that no other query uses."""
        with self._lock:
            session = self._idle.pop() if self._idle else None
        session = session or HttpSession(self._make_http_client)
        try:
            yield session
        finally:
            with self._lock:
                is_kept = self._idle is not None
                if self._idle is not None:
                    self._idle.append(session)
            if not is_kept:
                session.close()

    def close(self) -> None:
        """Close the connections, and those of running queries when these end."""
        with self._lock:
            idle, self._idle = self._idle, None
        for session in idle or ():
            session.close()


def query_headers(authorization: str | None, accept: str) -> dict[str, str]:
    """Return the header fields of a query."""
    headers = {"Accept": accept, "Content-Type": JSON}
    return headers if authorization is None else {**headers, "Authorization": authorization}


class ArrowRequest:
    """The request for the Arrow of a result. A pickle has none: connections cannot be pickled."""

    def __init__(self, fetch: Callable[[], bytes] | None = None) -> None:
        self._fetch = fetch

    def send(self) -> bytes:
        """Return the Arrow stream. Raises `QueryFailed`."""
        if self._fetch is None:
            raise QueryRefused("the result was pickled before its Arrow stream was fetched")
        return self._fetch()

    def __reduce__(self) -> tuple[type[ArrowRequest], tuple[()]]:
        return ArrowRequest, ()

    def __deepcopy__(self, _: object) -> ArrowRequest:
        return self


class Result(list[Row]):
    """The rows of a result, as a list of dicts. `meta` is what the service says about them.

    The conversions fetch the same query as Arrow, which has the types of the columns; without new
    events the service answers it from its cache. A pickle has the Arrow if it was fetched before.
    """

    def __init__(self, reply: Mapping[str, Any], arrow_request: ArrowRequest) -> None:
        super().__init__(reply["data"])
        self.meta: Mapping[str, Any] = reply.get("meta", {})
        self.totals: Row | None = reply.get("totals")
        self.others: list[Row] | None = reply.get("others")
        self._arrow_request = arrow_request
        self._arrow: bytes | None = None

    def arrow_stream(self) -> bytes:
        """Return the result as an Arrow stream, which any Arrow library reads."""
        if self._arrow is None:
            self._arrow = self._arrow_request.send()
        return self._arrow

    def to_arrow(self) -> ArrowTable:
        """Return a table of pyarrow, which must be installed (`headrace-client[arrow]`)."""
        return arrow_table(self.arrow_stream())

    def to_pandas(self) -> PandasFrame:
        """Return a frame of pandas, which must be installed (`headrace-client[pandas]`)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> PolarsFrame:
        """Return a frame of polars, which must be installed (`headrace-client[polars]`)."""
        return polars_frame(self.arrow_stream())


def read_response(response: Response) -> bytes:
    """Return the body of a response that has a result. Raises `QueryFailed`."""
    if response.head.is_success:
        return response.body
    status = response.head.status_code
    message, code = _reason(response)
    if status in _FINAL_STATUSES:
        raise QueryRefused(message, status=status, code=code)
    pause_s = retry_after_s(response.head.headers.get("Retry-After"))
    raise QueryUnavailable(message, status=status, code=code, retry_after_s=pause_s)


def decode_reply(content: bytes, kind: type[list[Any] | dict[str, Any]]) -> Mapping[str, Any]:
    """Return a reply whose data is of a kind. Raises `QueryUnavailable` for any other text."""
    try:
        reply = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.MsgspecError:
        reply = {}
    if not isinstance(reply.get("data"), kind):
        raise QueryUnavailable("the response is not from the service")
    return reply


def arrow_table(stream: bytes) -> ArrowTable:
    """Return an Arrow stream as a table of pyarrow."""
    return import_module("pyarrow.ipc").open_stream(stream).read_all()


def polars_frame(stream: bytes) -> PolarsFrame:
    """Return an Arrow stream as a frame of polars."""
    return import_module("polars").read_ipc_stream(stream)


def _reason(response: Response) -> tuple[str, str]:
    try:
        reply = msgspec.json.decode(response.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        reply = {}
    fallback = f"{response.head.status_code} {response.head.reason_phrase}"
    return str(reply.get("error") or fallback), str(reply.get("code") or "")
