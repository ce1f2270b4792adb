"""The application: the endpoint table with its handlers, and the routing by path."""

import logging
from collections.abc import Awaitable, Mapping
from random import Random
from typing import NamedTuple

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.administration.authorize import AdministrationAuthorizer
from headrace.administration.sign_in import SignInService
from headrace.base.clock import Clock
from headrace.base.errors import NotFound
from headrace.base.json_size import JsonLimits
from headrace.base.settings import Settings
from headrace.base.telemetry import Logger, Metrics, get_logger
from headrace.erasure.subject_access import SubjectAccess
from headrace.http import endpoints
from headrace.http.access_log import AccessLog
from headrace.http.apidocs.routes import docs_handler, openapi_handler
from headrace.http.endpoint import EndpointApp, RequestIds
from headrace.http.endpoints import EndpointSpec
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.cors import Cors, cors_for
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.reading.session_cookie import SessionCookies
from headrace.http.reading.slow_bodies import MinThroughput, SlowBodyGuard
from headrace.http.request import Handler, Request
from headrace.http.responses import Response
from headrace.http.routes.administration.audit import AuditRoute
from headrace.http.routes.administration.objects import AdministrationRoute, AdministrationUseCases
from headrace.http.routes.administration.quarantine import IsLoading, QuarantineRoute
from headrace.http.routes.formats.query_results import result_formats
from headrace.http.routes.formats.standard_results import STANDARD_FORMATS
from headrace.http.routes.ingest import EventAcceptor, ReportsRefusals, ingestion_handlers
from headrace.http.routes.live import LiveStreams, live_handler
from headrace.http.routes.operations import (
    ReadinessChecks,
    handle_health,
    metrics_handler,
    readiness_handler,
)
from headrace.http.routes.page import page_handler, root_handler
from headrace.http.routes.query import (
    BodyInput,
    ParameterInput,
    QueryInput,
    QueryRoute,
    QueryRunner,
)
from headrace.http.routes.rows.erasures import (
    ErasureBeginner,
    ErasureReader,
    ErasuresRoute,
    erasure_handler,
)
from headrace.http.routes.rows.export import Exporter, ExportRoute
from headrace.http.routes.rows.storage import StorageDescriber, StorageRoute
from headrace.http.routes.rows.subject_access import SubjectAccessRoute
from headrace.http.routes.saved import SavedQueryUseCase, saved_handlers
from headrace.http.routes.schema import SchemaDescriber, SchemaRoute
from headrace.http.routes.session import SessionRoute
from headrace.http.routes.tracker import tracker_handlers, tracker_paths
from headrace.http.server.fast_path import (
    MAX_FAST_PATH_BODY_BYTES,
    FastPath,
    NowaitEventAcceptor,
)
from headrace.http.server.parsing.cached_heads import FastPathRoute
from headrace.http.server.request_counter import BatchedCounter
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ports.audit import RecordChanges
from headrace.ports.directory import TenancySource
from headrace.ports.rate_limiter import CountedCall, RateLimiters, calls_per_minute
from headrace.ports.sessions import Sessions
from headrace.ports.store import Store
from headrace.query.authorize import QueryAuthorizer
from headrace.query.result_values import QueryResult
from headrace.query.standard.service import StandardResult


class ErasureUseCases(NamedTuple):
    """What begins erasures, what reads them, and what shows the rows that one would erase."""

    beginner: ErasureBeginner
    reader: ErasureReader
    subject_access: SubjectAccess


def random_request_ids(random: Random | None = None) -> RequestIds:
    """Return a source of request ids: sixteen hexadecimal digits, unique but not secret."""
    bits = (random or Random()).getrandbits  # noqa: S311 - not for secrets
    return lambda: f"{bits(64):016x}"


def create_app(
    *,
    acceptor: EventAcceptor,
    query_runners: Mapping[EndpointSpec, QueryRunner[QueryResult]],
    standard_runner: QueryRunner[StandardResult],
    saved_queries: SavedQueryUseCase,
    schema_describer: SchemaDescriber,
    live: LiveStreams,
    refusals: ReportsRefusals,
    exporter: Exporter,
    erasures: ErasureUseCases,
    storage_describer: StorageDescriber,
    tenancy: TenancySource,
    administration: AdministrationUseCases,
    record_changes: RecordChanges,
    is_loading: IsLoading,
    sessions: Sessions,
    limiters: RateLimiters,
    store: Store,
    readiness: ReadinessChecks,
    settings: Settings,
    clock: Clock,
    metrics: Metrics,
    log: Logger | None = None,
    request_ids: RequestIds | None = None,
    nowait_acceptor: NowaitEventAcceptor | None = None,
) -> "Application":
    """Return the application over the use cases.

    `query_runners` has the use case of every query endpoint but that of standard queries;
    `nowait_acceptor` is that of the fast path: see `Application.fast_path`. `is_loading` is whether
    the engine process loads what is in the logs. `readiness` has the checks of /ready, except that
    of the engine, which is the store's. Raises `OperatorError` for an invalid setting.
    """
    addresses = ClientAddresses(settings.trusted_proxies)
    slow_body_guard = SlowBodyGuard(
        settings.body_timeout_s,
        min_throughput=MinThroughput(settings.slow_body_after_s, settings.slow_body_bytes_per_s),
    )
    inflight = InflightLimiter(settings.max_inflight_bytes)
    limits = calls_per_minute(settings.query_rate_limit)
    authorizer, standard_authorizer = (
        QueryAuthorizer(
            tenancy=tenancy,
            limiter=limiters[call],
            write_limiter=limiters[CountedCall.WRITE],
            rate_limit=limits[call],
            clock=clock,
        )
        for call in (CountedCall.QUERY, CountedCall.STANDARD)
    )
    administrators = AdministrationAuthorizer(
        tenancy=tenancy, limiter=limiters[CountedCall.WRITE], clock=clock
    )
    json_limits = JsonLimits(settings.max_body_objects, settings.max_body_keys)
    query_bodies = _query_body_reader(settings, slow_body_guard, inflight)
    body_input = BodyInput(query_bodies, json_limits)
    query_inputs: Mapping[EndpointSpec, QueryInput] = {
        **dict.fromkeys(endpoints.QUERY_ENDPOINTS, body_input),
        **dict.fromkeys(endpoints.PARAMETER_QUERY_ENDPOINTS, ParameterInput(query_bodies)),
    }
    handlers: Mapping[EndpointSpec, Handler] = {
        **ingestion_handlers(
            acceptor,
            _ingestion_body_reader(settings, slow_body_guard, inflight),
            addresses,
            refusals,
        ),
        **{
            spec: QueryRoute(
                authorizer=authorizer,
                addresses=addresses,
                query_input=query_input,
                query_runner=query_runners[spec],
                formats=result_formats(settings),
            )
            for spec, query_input in query_inputs.items()
        },
        endpoints.STANDARD: QueryRoute(
            authorizer=standard_authorizer,
            addresses=addresses,
            query_input=body_input,
            query_runner=standard_runner,
            formats=STANDARD_FORMATS,
        ),
        **saved_handlers(
            saved_queries,
            authorizer=authorizer,
            addresses=addresses,
            body_reader=query_bodies,
            json_limits=json_limits,
            settings=settings,
        ),
        endpoints.LIVE: live_handler(
            live, authorizer=authorizer, addresses=addresses, body_reader=query_bodies
        ),
        endpoints.SCHEMA: SchemaRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=query_bodies,
            describer=schema_describer,
        ),
        endpoints.EXPORT: ExportRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=query_bodies,
            exporter=exporter,
            record_changes=record_changes,
        ),
        endpoints.ERASURES: ErasuresRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=query_bodies,
            json_limits=json_limits,
            beginner=erasures.beginner,
            reader=erasures.reader,
        ),
        endpoints.ERASURE: erasure_handler(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=query_bodies,
            reader=erasures.reader,
        ),
        endpoints.SUBJECT_ACCESS: SubjectAccessRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=query_bodies,
            json_limits=json_limits,
            subject_access=erasures.subject_access,
        ),
        endpoints.SESSION: SessionRoute(
            sign_in=SignInService(
                sessions,
                tenancy=tenancy,
                failures=limiters[CountedCall.FAILED_SIGN_IN],
                clock=clock,
            ),
            cookies=SessionCookies(addresses),
            addresses=addresses,
            body_reader=query_bodies,
        ),
        **{
            spec: AdministrationRoute(
                resource,
                authorizer=administrators,
                addresses=addresses,
                body_reader=query_bodies,
                json_limits=json_limits,
            )
            for spec, resource in administration.resources.items()
        },
        **dict.fromkeys(
            endpoints.QUARANTINE_ENDPOINTS,
            QuarantineRoute(
                administration.quarantine,
                is_loading=is_loading,
                authorizer=administrators,
                addresses=addresses,
                body_reader=query_bodies,
            ),
        ),
        endpoints.ADMIN_AUDIT: AuditRoute(
            administration.audit_reader,
            authorizer=administrators,
            addresses=addresses,
            body_reader=query_bodies,
        ),
        endpoints.STORAGE: StorageRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=query_bodies,
            describer=storage_describer,
        ),
        endpoints.HEALTH: handle_health,
        endpoints.READY: readiness_handler({**readiness, "engine": store.status}),
        endpoints.METRICS: metrics_handler(metrics),
        endpoints.OPENAPI: openapi_handler(settings),
        endpoints.DOCS: docs_handler(settings),
        **tracker_handlers(settings.tracker_path),
        endpoints.APP: page_handler(),
        endpoints.ROOT: root_handler,
        endpoints.UNKNOWN: raise_not_found,
        endpoints.UNKNOWN_V1: raise_not_found,
    }
    log = (log or get_logger()).bind()
    access_log = AccessLog(clock=clock, metrics=metrics, log=log)
    new_request_id = request_ids or random_request_ids()
    cors = {spec: cors_for(spec, settings.query_origins) for spec in handlers}
    fast_path = None
    # The fast path writes no access log, and at debug level every request has its line.
    if nowait_acceptor is not None and not log.is_enabled_for(logging.DEBUG):
        fast_path = FastPath(
            _fast_path_routes(cors),
            acceptor=nowait_acceptor,
            addresses=addresses,
            inflight=inflight,
            access_log=access_log,
            success_counter=BatchedCounter(metrics),
            request_ids=new_request_id,
            max_body_bytes=min(
                settings.max_body_bytes, settings.max_decoded_bytes, MAX_FAST_PATH_BODY_BYTES
            ),
            thread_cpu_s=clock.thread_cpu_s,
        )
    return Application(
        {
            spec: EndpointApp(
                spec,
                handler,
                cors=cors[spec],
                access_log=access_log,
                request_ids=new_request_id,
                inflight=inflight,
            )
            for spec, handler in handlers.items()
        },
        fast_path,
        paths=tracker_paths(settings.tracker_path),
    )


def _fast_path_routes(cors: Mapping[EndpointSpec, Cors | None]) -> Mapping[bytes, FastPathRoute]:
    return {
        spec.path.encode(): FastPathRoute(spec, IngestPath(spec.path), cors[spec])
        for spec in endpoints.INGESTION_ENDPOINTS
    }


def _ingestion_body_reader(
    settings: Settings, slow_body_guard: SlowBodyGuard, inflight: InflightLimiter
) -> BodyReader:
    return BodyReader(
        max_wire_bytes=settings.max_body_bytes,
        max_decoded_bytes=settings.max_decoded_bytes,
        slow_body_guard=slow_body_guard,
        inflight=inflight,
    )


def _query_body_reader(
    settings: Settings, slow_body_guard: SlowBodyGuard, inflight: InflightLimiter
) -> BodyReader:
    return BodyReader(
        max_wire_bytes=settings.max_query_bytes,
        max_decoded_bytes=settings.max_query_bytes,
        slow_body_guard=slow_body_guard,
        inflight=inflight,
    )


async def raise_not_found(_request: Request) -> Response:
    """Answer an unknown path."""
    raise NotFound


def _saved_answer_paths() -> list[str]:
    path = endpoints.SAVED_ANSWER.path
    return [path.replace("{format}", one) for one in endpoints.SAVED_FORMATS]


class Application:
    """Routes ingestion paths by a dictionary, and all others by Starlette's router.

    The server answers simple requests by `fast_path`, without calling the application. `paths` has
    those of endpoints that a setting moves.
    """

    def __init__(
        self,
        apps: Mapping[EndpointSpec, ASGIApp],
        fast_path: FastPath | None = None,
        *,
        paths: Mapping[EndpointSpec, str],
    ) -> None:
        self.fast_path = fast_path
        self._ingestion = {spec.path: apps[spec] for spec in endpoints.INGESTION_ENDPOINTS}
        self._root = apps[endpoints.ROOT]
        self._unknown = apps[endpoints.UNKNOWN]
        self._unknown_v1 = apps[endpoints.UNKNOWN_V1]
        elsewhere = (*self._ingestion, endpoints.SAVED_ANSWER.path)
        rest = [spec for spec in endpoints.ENDPOINTS if spec.path not in elsewhere]
        self._router = Router(
            [
                *(Route(path, apps[endpoints.SAVED_ANSWER]) for path in _saved_answer_paths()),
                *(Route(paths.get(spec, spec.path), apps[spec]) for spec in (*rest, endpoints.APP)),
            ],
            redirect_slashes=False,
            default=self._not_found,
        )

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request."""
        is_http = scope["type"] == "http"
        if is_http and scope["path"] == "/" and scope["method"] in endpoints.ROOT.methods:
            return self._root(scope, receive, send)
        endpoint = self._ingestion.get(scope["path"], self._router) if is_http else self._router
        return endpoint(scope, receive, send)

    async def _not_found(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an unknown path, in the envelope of its part of the API."""
        is_below_v1 = f"{scope['path']}/".startswith("/v1/")
        await (self._unknown_v1 if is_below_v1 else self._unknown)(scope, receive, send)
