"""The application: the endpoint table with its handlers, and the routing by path."""

import logging
from collections.abc import Awaitable, Mapping
from random import Random

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.base.logs import Logger, get_logger
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.http import endpoints
from headrace.http.access_log import AccessLog
from headrace.http.admission import Admission
from headrace.http.endpoint import EndpointApp, RequestIds
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.handlers import UseCases, make_handlers
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.cors import Cors, cors_for
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.routes.tracker import tracker_paths
from headrace.http.server.fast_path import (
    MAX_FAST_PATH_BODY_BYTES,
    FastPath,
    NowaitEventAcceptor,
)
from headrace.http.server.parsing.cached_heads import FastPathRoute
from headrace.http.server.request_counter import BatchedCounter
from headrace.ingest.receive.decoding.decode import IngestPath


def random_request_ids(random: Random | None = None) -> RequestIds:
    """Return a source of request ids: sixteen hexadecimal digits, unique but not secret."""
    bits = (random or Random()).getrandbits  # noqa: S311 - not for secrets
    return lambda: f"{bits(64):016x}"


def create_app(
    use_cases: UseCases,
    admission: Admission,
    *,
    settings: Settings,
    metrics: Metrics,
    log: Logger | None = None,
    request_ids: RequestIds | None = None,
    nowait_acceptor: NowaitEventAcceptor | None = None,
) -> "Application":
    """Return the application over the use cases.

    `nowait_acceptor` is that of the fast path: see `Application.fast_path`. Raises `OperatorError`
    for an invalid setting.
    """
    addresses = ClientAddresses(settings.trusted_proxies)
    inflight = InflightLimiter(settings.max_inflight_bytes)
    handlers = make_handlers(
        use_cases,
        admission,
        addresses=addresses,
        inflight=inflight,
        settings=settings,
        metrics=metrics,
    )
    log = (log or get_logger()).bind()
    access_log = AccessLog(clock=admission.clock, metrics=metrics, log=log)
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
            thread_cpu_s=admission.clock.thread_cpu_s,
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
