"""The application over fakes of its use cases, called as an ASGI server calls it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import structlog
from msgspec import structs
from starlette.types import ASGIApp, Message

from headrace.adapters.store.dialect.sql_text import write_sql
from headrace.base.clock import FixedClock
from headrace.base.errors import NotFound
from headrace.base.logs import Logger
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.http.admission import Admission
from headrace.http.app import Application, create_app
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.endpoints import PARAMETER_QUERY_ENDPOINTS, QUERY_ENDPOINTS
from headrace.http.handlers import ErasureUseCases, UseCases
from headrace.http.routes.administration.objects import administration_use_cases
from headrace.http.routes.operations import ReadinessChecks
from headrace.http.routes.query import QueryRunner
from headrace.ingest.receive.preparation import AcceptResult, IngestRequest, Reserve
from headrace.ingest.receive.refusals import RefusedCall
from headrace.model.audit import AuditedChange
from headrace.model.erasure import ErasureRequest, Selector, Subject
from headrace.model.export import ExportRequest
from headrace.model.plan import CompiledQuery
from headrace.model.saved_query import SavedQuery, SavedQueryEntry
from headrace.model.stored_rows import StoredRows
from headrace.model.tenancy import (
    ApiKey,
    Credentials,
    KeyId,
    KeyKind,
    OrganizationId,
    Scope,
    TenancySnapshot,
    Website,
    WebsiteId,
    hash_secret,
)
from headrace.ports.event_log import OnDurable
from headrace.ports.rate_limiter import CountedCall, RateLimitResult
from headrace.ports.rows.erasure import Erasure
from headrace.ports.saved_queries import SaveResult
from headrace.ports.sessions import SESSION_MS
from headrace.ports.store import QueryLimits, StoreResult, StoreStatus
from headrace.query.export.service import ExportedPiece
from headrace.query.result_values import QueryResult
from headrace.query.saved.service import IsKnown, SavedAnswer
from headrace.query.schema.service import EventName, PropertyKey, WebsiteSchema
from headrace.query.service import QueryService
from headrace.query.sql_service import SqlService
from headrace.query.standard.service import StandardResult, StandardService
from testing.queries import execution_over_store

NOW_MS = 1_767_607_200_000
REQUEST_ID = "0123456789abcdef"
INVALID_BODY = {
    "success": False,
    "error": "Invalid request body",
    "code": "INVALID_BODY",
    "requestId": REQUEST_ID,
}
UNREADABLE_BODIES = {
    "empty": b"",
    "cut off": b'{"key":',
    "not UTF-8": b'{"key":"\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"key":"a"}',
    "nested too deeply": b'{"key":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
}
"""Bodies that are no JSON, by what is wrong with them."""

CLIENT = ("203.0.113.9", 50_000)
READER_KEY, WRITER_KEY, FOREIGN_KEY = "hr_reader", "hr_writer", "hr_stranger"
MANAGER_KEY = "hr_manager"
SESSION, SIGN_IN_CODE = "hs_session", "code"
ACME, OTHERS = OrganizationId("org_acme"), OrganizationId("org_others")
PRIVATE, PUBLIC = WebsiteId("web_private"), WebsiteId("web_public")
DELETED = WebsiteId("web_deleted")

Headers = Mapping[str, str]
Json = Any


class Response(NamedTuple):
    """A response; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The body as JSON."""
        return json.loads(self.body)


class FakeIngestService:
    """Accepts every request or raises `outcome`, and records the requests."""

    def __init__(self) -> None:
        self.outcome: AcceptResult | BaseException = AcceptResult(1)
        self.requests: list[IngestRequest] = []

    async def accept(self, request: IngestRequest, reserve: Reserve) -> AcceptResult:
        reserve(0)
        self.requests.append(request)
        if isinstance(self.outcome, AcceptResult):
            return self.outcome
        raise self.outcome


class FakeNowaitAcceptor:
    """Accepts without waiting; confirms at once or leaves the callbacks to the test."""

    def __init__(self, *, accepts: bool = True, confirms: bool = True) -> None:
        self.accepts = accepts
        self.confirms = confirms
        self.requests: list[IngestRequest] = []
        self.waiting: list[OnDurable] = []
        self.reached = asyncio.Event()

    def try_accept_nowait(
        self, request: IngestRequest, on_durable: OnDurable
    ) -> AcceptResult | None:
        self.requests.append(request)
        self.reached.set()
        if not self.accepts:
            return None
        if self.confirms:
            asyncio.get_running_loop().call_soon(on_durable, None)
        else:
            self.waiting.append(on_durable)
        return AcceptResult(1)


class FakeQueryService:
    """Returns or raises `outcome`; `never` makes it wait until it is cancelled."""

    never: Any = object()

    def __init__(self, outcome: QueryResult | BaseException) -> None:
        self.outcome: Any = outcome
        self.requests: list[tuple[WebsiteId, bytes]] = []
        self.began = asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def run(self, website_id: WebsiteId, body: bytes) -> QueryResult:
        self.requests.append((website_id, body))
        self.began.set()
        if isinstance(self.outcome, QueryResult):
            return self.outcome
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise
        raise AssertionError("waited for ever")


class FakeTenancySource:
    """Returns one snapshot, and another after a refresh, which raises `failure` if there is one."""

    def __init__(self, tenancy: TenancySnapshot) -> None:
        self.snapshot = self.newest = tenancy
        self.failure: Exception | None = None

    def current(self) -> TenancySnapshot:
        return self.snapshot

    async def refreshed(self) -> TenancySnapshot:
        if self.failure is not None:
            raise self.failure
        self.snapshot = self.newest
        return self.snapshot


class FakeSessions:
    """Begins the session `SESSION` with one code or one key, and puts it into the snapshot."""

    def __init__(self, tenancy: FakeTenancySource) -> None:
        self._tenancy = tenancy
        self.ended: list[KeyId] = []

    def create_code(
        self,
        *,
        scopes: frozenset[Scope],
        organization_id: OrganizationId | None = None,
        website_ids: tuple[WebsiteId, ...] = (),
    ) -> str:
        raise AssertionError(f"no request creates a code: {scopes} {organization_id} {website_ids}")

    def begin_with_code(self, code: str) -> tuple[ApiKey, str] | None:
        return self._begin(frozenset({Scope.READ_DATA, Scope.MANAGE_DATA}), code == SIGN_IN_CODE)

    def begin_with_key(self, secret: str) -> tuple[ApiKey, str] | None:
        return self._begin(frozenset({Scope.READ_DATA}), secret == READER_KEY)

    def end(self, session_id: KeyId) -> None:
        self.ended.append(session_id)

    def _begin(self, scopes: frozenset[Scope], is_valid: bool) -> tuple[ApiKey, str] | None:
        if not is_valid:
            return None
        session = structs.replace(
            _make_key(SESSION, ACME, *scopes),
            id=KeyId("ses_1"),
            kind=KeyKind.SESSION,
            expires_ms=NOW_MS + SESSION_MS,
        )
        self._tenancy.newest = structs.replace(
            self._tenancy.newest, sessions={session.secret_hash: session}
        )
        return session, SESSION


class FakeRateLimiter:
    """Returns `verdict` and records the counted keys."""

    def __init__(self) -> None:
        self.verdict = RateLimitResult(allowed=True, limit=30, remaining=29, reset_s=60)
        self.callers: list[str] = []

    async def hit(self, caller: str) -> RateLimitResult:
        self.callers.append(caller)
        return self.verdict


class FakeStore:
    """A store with the status that a test sets. It runs nothing."""

    def __init__(self) -> None:
        self.store_status = StoreStatus.READY

    async def select(self, query: CompiledQuery, limits: QueryLimits) -> StoreResult:
        raise NotImplementedError(query, limits)

    async def status(self) -> StoreStatus:
        return self.store_status


class FakeStorageDescriber:
    """Describes one table of each website that is asked for, or raises `outcome`."""

    def __init__(self) -> None:
        self.outcome: BaseException | None = None

    async def describe(self, website_id: WebsiteId | None) -> Sequence[StoredRows]:
        if self.outcome is not None:
            raise self.outcome
        websites = (PRIVATE, PUBLIC, DELETED) if website_id is None else (website_id,)
        return tuple(rows for one in websites for rows in self._tables(one))

    def _tables(self, website_id: WebsiteId) -> tuple[StoredRows, StoredRows]:
        return (
            StoredRows(
                website_id=website_id,
                table="events",
                rows=2,
                expired=1,
                bytes=300,
                oldest_ms=NOW_MS,
                newest_ms=NOW_MS + 7,
                retain_days=30,
                cutoff_ms=NOW_MS - 36_000_000,
            ),
            StoredRows(
                website_id=website_id,
                table="errors",
                rows=0,
                expired=0,
                bytes=0,
                oldest_ms=None,
                newest_ms=None,
                retain_days=0,
                cutoff_ms=None,
            ),
        )


class FakeSchemaDescriber:
    """Describes one name and one key of each website that is asked for, or raises `outcome`."""

    def __init__(self) -> None:
        self.outcome: BaseException | None = None
        self.requests: list[WebsiteId] = []

    async def describe(self, website_id: WebsiteId) -> WebsiteSchema:
        self.requests.append(website_id)
        if self.outcome is not None:
            raise self.outcome
        return WebsiteSchema(
            [EventName("signup", 2, "2026-01-05T10:00:00.000Z")],
            [PropertyKey("plan", ("text", "number"), 1)],
        )


class FakeExporter:
    """Begins exports of `pieces`; an exception among them is raised in its place."""

    def __init__(self) -> None:
        self.outcome: BaseException | None = None
        self.bytes: list[bytes | BaseException] = [b"one\n", b"two\n"]
        self.requests: list[ExportRequest] = []
        self.running = 0
        self.began = asyncio.Event()

    @contextlib.asynccontextmanager
    async def begin(self, request: ExportRequest) -> AsyncGenerator["FakeExporter"]:
        if self.outcome is not None:
            raise self.outcome
        self.requests.append(request)
        self.running += 1
        try:
            yield self
        finally:
            self.running -= 1

    async def pieces(self) -> AsyncGenerator[ExportedPiece]:
        for one in self.bytes:
            if isinstance(one, BaseException):
                raise one
            yield ExportedPiece(one)
        self.began.set()


class FakeErasures:
    """Begins erasures, or raises `outcome`, and keeps them."""

    def __init__(self) -> None:
        self.outcome: BaseException | None = None
        self.requests: list[ErasureRequest] = []
        self.kept: list[Erasure] = []

    async def begin(self, request: ErasureRequest) -> Erasure:
        if self.outcome is not None:
            raise self.outcome
        self.requests.append(request)
        erasure = Erasure(
            id=f"era_{len(self.requests)}",
            website_id=request.website_id,
            kind=request.selectors[0].kind,
            subjects=(Subject(request.selectors[0].kind, "ab"),),
            by=request.by,
            requested_ms=NOW_MS,
            answers_clean_ms=NOW_MS,
            rows={"events": 1, "quarantine": 0},
        )
        if not request.dry_run:
            self.kept.append(erasure)
        return erasure

    def get(self, erasure_id: str) -> Erasure | None:
        return next((one for one in self.kept if one.id == erasure_id), None)

    def all(self) -> list[Erasure]:
        return self.kept


class FakeSubjectAccess:
    """Yields the lines, or raises `outcome` before the first one."""

    def __init__(self) -> None:
        self.outcome: BaseException | None = None
        self.requests: list[tuple[str, Sequence[Selector], bool]] = []
        self.shown: list[bytes] = []

    async def lines(
        self, website_id: str, selectors: Sequence[Selector], *, with_visitors: bool = False
    ) -> AsyncGenerator[bytes]:
        if self.outcome is not None:
            raise self.outcome
        self.requests.append((website_id, selectors, with_visitors))
        for line in self.shown:
            yield line


class FakeSavedQueries:
    """Keeps saved queries in memory; every answer is `result`, with the tag `entity_tag`."""

    def __init__(self, result: QueryResult) -> None:
        self.result = result
        self.entity_tag = 'W/"1"'
        self.media_formats: list[str] = []
        self.kept: dict[tuple[WebsiteId, str], SavedQuery] = {}
        self.tokens: dict[str, SavedQuery] = {}
        self.outcome: BaseException | None = None

    async def save(
        self, website_id: WebsiteId, name: str, body: bytes, *, rotate: bool
    ) -> SaveResult:
        if self.outcome is not None:
            raise self.outcome
        is_new = (website_id, name) not in self.kept
        token = f"hq_{len(self.tokens)}" if is_new or rotate else None
        query = SavedQuery(website_id, name, body, hash_secret(token or ""), NOW_MS, NOW_MS)
        self.kept[website_id, name] = query
        if token is not None:
            self.tokens[token] = query
        return SaveResult(query, token, is_new)

    async def read(self, website_id: WebsiteId, name: str) -> SavedQuery:
        if (website_id, name) not in self.kept:
            raise NotFound
        return self.kept[website_id, name]

    async def list_of(self, website_id: WebsiteId) -> tuple[SavedQueryEntry, ...]:
        return tuple(
            SavedQueryEntry(website_id, name, query.created_ms, query.updated_ms)
            for (owner, name), query in sorted(self.kept.items())
            if owner == website_id
        )

    async def delete(self, website_id: WebsiteId, name: str) -> SavedQuery:
        query = await self.read(website_id, name)
        del self.kept[website_id, name]
        return query

    async def read_by_token(self, token: str, name: str, website_id: str | None) -> SavedQuery:
        query = self.tokens.get(token)
        if query is None or query.name != name or website_id not in (None, query.website_id):
            raise NotFound
        return query

    async def answer(self, saved: SavedQuery, media_format: str, is_known: IsKnown) -> SavedAnswer:
        assert saved.name
        self.media_formats.append(media_format)
        if self.outcome is not None:
            raise self.outcome
        return SavedAnswer(self.entity_tag, None if is_known(self.entity_tag) else self.result)


class FakeLiveStreams:
    """Streams `events`, or raises `outcome` when a stream is counted."""

    def __init__(self) -> None:
        self.outcome: BaseException | None = None
        self.events = [b":\n\n", b"data: 1\n\n"]
        self.requests: list[tuple[WebsiteId, str]] = []
        self.counted: list[str] = []
        self.may_read: Callable[[], bool] = lambda: True

    @contextlib.asynccontextmanager
    async def count_stream(self, caller: str) -> AsyncGenerator[None]:
        if self.outcome is not None:
            raise self.outcome
        self.counted.append(caller)
        try:
            yield
        finally:
            self.counted.remove(caller)

    async def stream(
        self, website_id: WebsiteId, last_id: str, may_read: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        self.requests.append((website_id, last_id))
        self.may_read = may_read
        for event in self.events:
            yield event


class FakeRefusals:
    """Keeps the refused calls that are reported."""

    def __init__(self) -> None:
        self.calls: list[tuple[Credentials, RefusedCall]] = []

    def report(self, credentials: Credentials, call: RefusedCall) -> None:
        self.calls.append((credentials, call))


class Harness:
    """An application whose dependencies are all fakes."""

    def __init__(self, settings: Settings | None = None, result: QueryResult | None = None) -> None:
        self.settings = settings or Settings()
        self.acceptor = FakeIngestService()
        self.direct: FakeNowaitAcceptor | None = None
        self.queries = FakeQueryService(result or empty_result())
        self.runners: dict[EndpointSpec, QueryRunner[QueryResult]] = {}
        self.saved_queries = FakeSavedQueries(result or empty_result())
        self.schemas = FakeSchemaDescriber()
        self.live = FakeLiveStreams()
        self.refusals = FakeRefusals()
        self.exporter = FakeExporter()
        self.subject_access = FakeSubjectAccess()
        self.storage = FakeStorageDescriber()
        self.tenancy = FakeTenancySource(make_tenancy())
        self.sessions = FakeSessions(self.tenancy)
        self.directory: Any = None  # real ones are opened by the tests of administration
        self.erasures = FakeErasures()
        self.limiter = FakeRateLimiter()
        self.standard_limiter = FakeRateLimiter()
        self.write_limiter = FakeRateLimiter()
        self.sign_in_limiter = FakeRateLimiter()
        self.store = FakeStore()
        self.standard: QueryRunner[StandardResult] = StandardService(
            execution_over_store(self.store)
        )
        self.sql_writer: QueryRunner[str] = SqlService(
            QueryService(execution_over_store(self.store)), write_sql=write_sql
        )
        self.log_is_ready = True
        self.lines: list[dict[str, Any]] = []
        self.quarantine: Any = None  # real ones are opened by its tests
        self.engine_is_loading = True
        self.recorded: list[tuple[str, AuditedChange]] = []
        self.audit_failure: BaseException | None = None
        self.metrics = Metrics()

    def app(self, *, debug: bool = False) -> Application:
        """Build the application."""
        return create_app(
            UseCases(
                acceptor=self.acceptor,
                refusals=self.refusals,
                query_runners={
                    **dict.fromkeys((*QUERY_ENDPOINTS, *PARAMETER_QUERY_ENDPOINTS), self.queries),
                    **self.runners,
                },
                standard_runner=self.standard,
                sql_writer=self.sql_writer,
                saved_queries=self.saved_queries,
                schema_describer=self.schemas,
                live=self.live,
                exporter=self.exporter,
                erasures=ErasureUseCases(self.erasures, self.erasures, self.subject_access),
                storage_describer=self.storage,
                administration=administration_use_cases(self.directory, self.quarantine),
                record_changes=self._record_changes,
                is_loading=self._is_loading,
                readiness=self._readiness(),
            ),
            Admission(
                tenancy=self.tenancy,
                sessions=self.sessions,
                limiters={
                    CountedCall.QUERY: self.limiter,
                    CountedCall.STANDARD: self.standard_limiter,
                    CountedCall.WRITE: self.write_limiter,
                    CountedCall.FAILED_SIGN_IN: self.sign_in_limiter,
                },
                clock=FixedClock(NOW_MS),
            ),
            settings=self.settings,
            metrics=self.metrics,
            log=self._logger(debug=debug),
            request_ids=lambda: REQUEST_ID,
            nowait_acceptor=self.direct,
        )

    def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: str = "",
        headers: Headers | Sequence[tuple[str, str]] = (),
        client: tuple[str, int] | None = CLIENT,
        debug: bool = False,
    ) -> Response:
        """Send one request and return the response."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        scope = make_scope(method, path, query, pairs, client)
        return asyncio.run(exchange(self.app(debug=debug), scope, body))

    async def _is_loading(self) -> bool:
        return self.engine_is_loading

    def _record_changes(self, by: str, changes: Sequence[AuditedChange]) -> None:
        if self.audit_failure is not None:
            raise self.audit_failure
        self.recorded.extend((by, change) for change in changes)

    def _readiness(self) -> ReadinessChecks:
        async def log_is_ready() -> bool:
            return self.log_is_ready

        return {"log": log_is_ready, "engine": self.store.status}

    def _logger(self, *, debug: bool) -> Logger:
        def keep(_logger: object, method: str, event: Any) -> Any:
            self.lines.append({"level": method, **event})
            raise structlog.DropEvent

        level = 10 if debug else 20
        logger: Logger = structlog.wrap_logger(
            None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(level)
        )
        return logger


def make_scope(
    method: str,
    path: str,
    query: str = "",
    headers: Any = (),
    client: tuple[str, int] | None = CLIENT,
) -> dict[str, Any]:
    """Build the ASGI scope of a request as a server does."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "client": client,
        "server": ("127.0.0.1", 8080),
        "state": {},
    }


async def exchange(app: ASGIApp, scope: dict[str, Any], *chunks: bytes) -> Response:
    """Call an application with a body in chunks and return its response."""
    waiting = list(chunks)
    sent: list[Message] = []

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()
        chunk = waiting.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *bodies = sent
    headers = [(name.decode(), value.decode()) for name, value in start["headers"]]
    assert len(headers) == len(dict(headers)), "a header was sent twice"
    return Response(start["status"], dict(headers), b"".join(one["body"] for one in bodies))


NOTHING_READ: Mapping[str, Any] = {
    "rowsRead": 0,
    "bytesRead": 0,
    "cached": False,
    "watermark": "1970-01-01T00:00:00.000Z",
}
"""The metadata of a result of a fake: what its store has read, at the epoch."""


def empty_result() -> QueryResult:
    """Build a result without rows."""
    return QueryResult((), (), [], limit=1000, truncated=False, execution_ms=1.5)


def make_tenancy() -> TenancySnapshot:
    """Build a private and a public website, with keys to read, to write, and of another tenant."""
    keys = [
        _make_key(MANAGER_KEY, ACME, Scope.MANAGE_DATA),
        _make_key(READER_KEY, ACME, Scope.READ_DATA),
        _make_key(WRITER_KEY, ACME, Scope.TRACK_EVENTS),
        _make_key(FOREIGN_KEY, OTHERS, Scope.READ_DATA),
    ]
    websites = [
        Website(PRIVATE, "private", "", ACME, NOW_MS),
        Website(PUBLIC, "public", "", ACME, NOW_MS, public=True),
    ]
    return TenancySnapshot(
        revision=1,
        websites={website.id: website for website in websites},
        keys={key.secret_hash: key for key in keys},
        websites_by_organization={ACME: (PRIVATE, PUBLIC)},
    )


def _make_key(secret: str, organization: OrganizationId, *scopes: Scope) -> ApiKey:
    return ApiKey(
        id=KeyId(f"key_{secret}"),
        prefix=secret[:6],
        secret_hash=hash_secret(secret),
        organization_id=organization,
        scopes=frozenset(scopes),
        created_ms=NOW_MS,
    )


def bearer(secret: str) -> dict[str, str]:
    """Return the request headers that carry a key."""
    return {"Authorization": f"Bearer {secret}"}


def ingestion_error(message: str, code: str) -> dict[str, str]:
    """Return the whole body of an error outside /v1."""
    return {"status": "error", "message": message, "code": code, "requestId": REQUEST_ID}


def query_error(message: str, code: str) -> dict[str, Any]:
    """Return the whole body of an error below /v1."""
    return {"success": False, "error": message, "code": code, "requestId": REQUEST_ID}


JSON_HEADERS = {"content-type": "application/json", "x-request-id": REQUEST_ID}


def status_and_body(response: Response) -> tuple[int, Json]:
    """Check the headers of a JSON response and return its status and body."""
    assert response.headers["content-length"] == str(len(response.body))
    assert JSON_HEADERS.items() <= response.headers.items()
    return response.status, response.json


Build = Callable[[], Harness]
