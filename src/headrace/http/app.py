"""The application: the endpoint table with its handlers, and what finds them by path."""

import logging
from collections.abc import Awaitable, Mapping
from random import Random

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.base.clock import Clock
from headrace.base.errors import NotFound
from headrace.base.settings import Settings
from headrace.base.telemetry import Logger, Metrics, get_logger
from headrace.http import endpoints
from headrace.http.access_log import CallRecorder
from headrace.http.apidocs.routes import docs_handler, openapi_handler
from headrace.http.endpoint import Endpoint, RequestIds
from headrace.http.endpoints import EndpointRow
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.cors import cors_of
from headrace.http.reading.memory_limit import InflightBytes
from headrace.http.reading.slow_bodies import StallWatch
from headrace.http.request import Call, Handler
from headrace.http.responses import Reply
from headrace.http.routes.ingest import AcceptsEvents, ingestion_handlers
from headrace.http.routes.operations import (
    Readiness,
    answer_health,
    metrics_handler,
    readiness_handler,
)
from headrace.http.routes.query import AnswersQueries, QueryGate, QueryRoute, schema_handler
from headrace.http.server.fast_path import AcceptsDirectly, DirectLane, Place
from headrace.http.server.request_counter import CallTally
from headrace.ingest.receive.decode import Endpoint as Ingestion
from headrace.ports.directory import TenancySource
from headrace.ports.rate_limiter import Limiter
from headrace.ports.store import Store


def random_request_ids(random: Random | None = None) -> RequestIds:
    """Return a source of sixteen hexadecimal digits; they tell calls apart and keep no secret."""
    bits = (random or Random()).getrandbits  # noqa: S311 - not for secrets
    return lambda: f"{bits(64):016x}"


def create_app(
    *,
    acceptor: AcceptsEvents,
    query_service: AnswersQueries,
    tenancy: TenancySource,
    limiter: Limiter,
    store: Store,
    readiness: Readiness,
    settings: Settings,
    clock: Clock,
    metrics: Metrics,
    log: Logger | None = None,
    request_ids: RequestIds | None = None,
    direct: AcceptsDirectly | None = None,
) -> "Application":
    """Put HTTP in front of the use cases.

    `direct` is the accepting use case for the server's short way: see `Application.lane`.
    `readiness` names the parts that must work beside the engine, which the store speaks for.
    Raises `OperatorError` for a setting that cannot be used.
    """
    addresses = ClientAddresses(settings.trusted_proxies)
    stalls = StallWatch(
        settings.body_timeout_s,
        slow_after_s=settings.slow_body_after_s,
        least_bytes_per_s=settings.slow_body_bytes_per_s,
    )
    inflight = InflightBytes(settings.max_inflight_bytes)
    gate = QueryGate(tenancy=tenancy, limiter=limiter, addresses=addresses, clock=clock)
    handlers: Mapping[EndpointRow, Handler] = {
        **ingestion_handlers(acceptor, _ingestion_bodies(settings, stalls, inflight), addresses),
        endpoints.QUERY: QueryRoute(
            gate=gate, bodies=_query_bodies(settings, stalls, inflight), queries=query_service
        ),
        endpoints.SCHEMA: schema_handler(),
        endpoints.HEALTH: answer_health,
        endpoints.READY: readiness_handler({**readiness, "engine": store.is_ready}),
        endpoints.METRICS: metrics_handler(metrics),
        endpoints.OPENAPI: openapi_handler(settings),
        endpoints.DOCS: docs_handler(settings),
        endpoints.UNKNOWN: refuse_path,
        endpoints.UNKNOWN_BELOW_V1: refuse_path,
    }
    log = (log or get_logger()).bind()
    recorder = CallRecorder(clock=clock, metrics=metrics, log=log)
    new_request_id = request_ids or random_request_ids()
    cors = {row: cors_of(row, settings.query_origins) for row in handlers}
    lane = None
    if direct is not None and not log.is_enabled_for(logging.DEBUG):  # there each call has a line
        lane = DirectLane(
            {
                row.path.encode(): Place(row, Ingestion(row.path), cors[row])
                for row in endpoints.INGESTION_ENDPOINTS
            },
            acceptor=direct,
            addresses=addresses,
            inflight=inflight,
            recorder=recorder,
            tally=CallTally(metrics),
            request_ids=new_request_id,
            max_body_bytes=min(settings.max_body_bytes, settings.max_decoded_bytes),
        )
    return Application(
        {
            row: Endpoint(
                row,
                handler,
                cors=cors[row],
                recorder=recorder,
                request_ids=new_request_id,
                inflight=inflight,
            )
            for row, handler in handlers.items()
        },
        lane,
    )


def _ingestion_bodies(
    settings: Settings, stalls: StallWatch, inflight: InflightBytes
) -> BodyReader:
    return BodyReader(
        max_wire_bytes=settings.max_body_bytes,
        max_decoded_bytes=settings.max_decoded_bytes,
        stalls=stalls,
        inflight=inflight,
    )


def _query_bodies(settings: Settings, stalls: StallWatch, inflight: InflightBytes) -> BodyReader:
    return BodyReader(
        max_wire_bytes=settings.max_query_bytes,
        max_decoded_bytes=settings.max_query_bytes,
        stalls=stalls,
        inflight=inflight,
    )


async def refuse_path(_call: Call) -> Reply:
    """Answer a path that does not exist."""
    raise NotFound


class Application:
    """Looks ingestion paths up in a dictionary, and leaves everything else to the router.

    `lane` is for the server that the application runs in, and answers plain calls without it.
    """

    def __init__(
        self, by_row: Mapping[EndpointRow, ASGIApp], lane: DirectLane | None = None
    ) -> None:
        self.lane = lane
        self._ingestion = {row.path: by_row[row] for row in endpoints.INGESTION_ENDPOINTS}
        self._unknown = by_row[endpoints.UNKNOWN]
        self._unknown_below_v1 = by_row[endpoints.UNKNOWN_BELOW_V1]
        rest = [row for row in endpoints.ENDPOINTS if row.path not in self._ingestion]
        self._rest = Router(
            [Route(row.path, by_row[row]) for row in rest],
            redirect_slashes=False,
            default=self._refuse,
        )

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one call."""
        is_http = scope["type"] == "http"
        endpoint = self._ingestion.get(scope["path"], self._rest) if is_http else self._rest
        return endpoint(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a path that does not exist in the envelope of where it would be."""
        is_below_v1 = f"{scope['path']}/".startswith("/v1/")
        await (self._unknown_below_v1 if is_below_v1 else self._unknown)(scope, receive, send)
