"""The handler of each endpoint, made over the use cases."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from headrace.administration.authorize import AdministrationAuthorizer
from headrace.base.errors import NotFound
from headrace.base.json_size import JsonLimits
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.erasure.subject_access import SubjectAccess
from headrace.http import endpoints
from headrace.http.admission import Admission
from headrace.http.apidocs.routes import docs_handler, openapi_handler
from headrace.http.endpoint_spec import EndpointSpec
from headrace.http.reading.body import BodyReader
from headrace.http.reading.client_address import ClientAddresses
from headrace.http.reading.memory_limit import InflightLimiter
from headrace.http.reading.session_cookie import SessionCookies
from headrace.http.reading.slow_bodies import MinThroughput, SlowBodyGuard
from headrace.http.request import Handler, Request
from headrace.http.responses import Response
from headrace.http.routes.administration.audit import AuditRoute
from headrace.http.routes.administration.objects import AdministrationRoute, AdministrationUseCases
from headrace.http.routes.administration.quarantine import IsLoading, QuarantineRoute
from headrace.http.routes.formats.query_results import result_formats
from headrace.http.routes.formats.sql_results import SQL_FORMATS
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
from headrace.http.routes.saved.handlers import saved_handlers
from headrace.http.routes.saved.use_case import SavedQueryUseCase
from headrace.http.routes.schema import SchemaDescriber, SchemaRoute
from headrace.http.routes.session import SessionRoute
from headrace.http.routes.tracker import tracker_handlers
from headrace.ports.audit import RecordChanges
from headrace.ports.rate_limiter import CountedCall
from headrace.query.authorize import QueryAuthorizer
from headrace.query.result_values import QueryResult
from headrace.query.standard.service import StandardResult

Handlers = Mapping[EndpointSpec, Handler]


class ErasureUseCases(NamedTuple):
    """What begins erasures, what reads them, and what shows the rows that one would erase."""

    beginner: ErasureBeginner
    reader: ErasureReader
    subject_access: SubjectAccess


class UseCases(Struct, frozen=True, kw_only=True):
    """What the handlers call.

    `query_runners` has the use case of every endpoint whose result is rows. `sql_writer` writes the
    SQL of a custom query.
    `is_loading` is whether the engine process loads what is in the logs. `readiness` has all checks
    of /ready.
    """

    acceptor: EventAcceptor
    refusals: ReportsRefusals
    query_runners: Mapping[EndpointSpec, QueryRunner[QueryResult]]
    standard_runner: QueryRunner[StandardResult]
    sql_writer: QueryRunner[str]
    saved_queries: SavedQueryUseCase
    schema_describer: SchemaDescriber
    live: LiveStreams
    exporter: Exporter
    erasures: ErasureUseCases
    storage_describer: StorageDescriber
    administration: AdministrationUseCases
    record_changes: RecordChanges
    is_loading: IsLoading
    readiness: ReadinessChecks


class _Reading(NamedTuple):
    """How handlers read a call: where it comes from, and its body."""

    addresses: ClientAddresses
    ingestion_bodies: BodyReader
    query_bodies: BodyReader


def make_handlers(
    use_cases: UseCases,
    admission: Admission,
    *,
    addresses: ClientAddresses,
    inflight: InflightLimiter,
    settings: Settings,
    metrics: Metrics,
) -> Handlers:
    """Return the handler of every endpoint."""
    reading = _reading(settings, addresses, inflight)
    authorizer = admission.query_authorizer(settings, CountedCall.QUERY)
    return {
        **ingestion_handlers(
            use_cases.acceptor, reading.ingestion_bodies, addresses, use_cases.refusals
        ),
        **_query_handlers(use_cases, authorizer, reading, settings),
        endpoints.STANDARD: QueryRoute(
            authorizer=admission.query_authorizer(settings, CountedCall.STANDARD),
            addresses=addresses,
            query_input=BodyInput(reading.query_bodies),
            query_runner=use_cases.standard_runner,
            formats=STANDARD_FORMATS,
        ),
        endpoints.SQL: QueryRoute(
            authorizer=authorizer,
            addresses=addresses,
            query_input=BodyInput(reading.query_bodies),
            query_runner=use_cases.sql_writer,
            formats=SQL_FORMATS,
        ),
        **_row_handlers(use_cases, authorizer, reading),
        **_administration_handlers(use_cases, admission.administration_authorizer(), reading),
        endpoints.SESSION: SessionRoute(
            sign_in=admission.sign_in_service(),
            cookies=SessionCookies(addresses),
            addresses=addresses,
            body_reader=reading.query_bodies,
        ),
        **_public_handlers(use_cases.readiness, settings, metrics),
    }


def _reading(settings: Settings, addresses: ClientAddresses, inflight: InflightLimiter) -> _Reading:
    slow_body_guard = SlowBodyGuard(
        settings.body_timeout_s,
        min_throughput=MinThroughput(settings.slow_body_after_s, settings.slow_body_bytes_per_s),
    )
    json_limits = JsonLimits(settings.max_body_objects, settings.max_body_keys)
    return _Reading(
        addresses,
        ingestion_bodies=BodyReader(
            max_wire_bytes=settings.max_body_bytes,
            max_decoded_bytes=settings.max_decoded_bytes,
            json_limits=json_limits,
            slow_body_guard=slow_body_guard,
            inflight=inflight,
        ),
        query_bodies=BodyReader(
            max_wire_bytes=settings.max_query_bytes,
            max_decoded_bytes=settings.max_query_bytes,
            json_limits=json_limits,
            slow_body_guard=slow_body_guard,
            inflight=inflight,
        ),
    )


def _query_handlers(
    use_cases: UseCases, authorizer: QueryAuthorizer, reading: _Reading, settings: Settings
) -> Handlers:
    """Return the handlers of questions about the events of a website."""
    addresses, bodies = reading.addresses, reading.query_bodies
    query_inputs: Mapping[EndpointSpec, QueryInput] = {
        **dict.fromkeys(endpoints.QUERY_ENDPOINTS, BodyInput(bodies)),
        **dict.fromkeys(endpoints.PARAMETER_QUERY_ENDPOINTS, ParameterInput(bodies)),
    }
    return {
        **{
            spec: QueryRoute(
                authorizer=authorizer,
                addresses=addresses,
                query_input=query_input,
                query_runner=use_cases.query_runners[spec],
                formats=result_formats(settings),
            )
            for spec, query_input in query_inputs.items()
        },
        **saved_handlers(
            use_cases.saved_queries,
            authorizer=authorizer,
            addresses=addresses,
            body_reader=bodies,
            settings=settings,
        ),
        endpoints.LIVE: live_handler(
            use_cases.live, authorizer=authorizer, addresses=addresses, body_reader=bodies
        ),
        endpoints.SCHEMA: SchemaRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=bodies,
            describer=use_cases.schema_describer,
        ),
    }


def _row_handlers(use_cases: UseCases, authorizer: QueryAuthorizer, reading: _Reading) -> Handlers:
    """Return the handlers for stored rows as a whole."""
    addresses, bodies = reading.addresses, reading.query_bodies
    erasures = use_cases.erasures
    return {
        endpoints.EXPORT: ExportRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=bodies,
            exporter=use_cases.exporter,
            record_changes=use_cases.record_changes,
        ),
        endpoints.ERASURES: ErasuresRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=bodies,
            beginner=erasures.beginner,
            reader=erasures.reader,
        ),
        endpoints.ERASURE: erasure_handler(
            authorizer=authorizer, addresses=addresses, body_reader=bodies, reader=erasures.reader
        ),
        endpoints.SUBJECT_ACCESS: SubjectAccessRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=bodies,
            subject_access=erasures.subject_access,
        ),
        endpoints.STORAGE: StorageRoute(
            authorizer=authorizer,
            addresses=addresses,
            body_reader=bodies,
            describer=use_cases.storage_describer,
        ),
    }


def _administration_handlers(
    use_cases: UseCases, authorizer: AdministrationAuthorizer, reading: _Reading
) -> Handlers:
    """Return the handlers of /v1/admin."""
    addresses, bodies = reading.addresses, reading.query_bodies
    administration = use_cases.administration
    quarantine = QuarantineRoute(
        administration.quarantine,
        is_loading=use_cases.is_loading,
        authorizer=authorizer,
        addresses=addresses,
        body_reader=bodies,
    )
    return {
        **{
            spec: AdministrationRoute(
                resource, authorizer=authorizer, addresses=addresses, body_reader=bodies
            )
            for spec, resource in administration.resources.items()
        },
        **dict.fromkeys(endpoints.QUARANTINE_ENDPOINTS, quarantine),
        endpoints.ADMIN_AUDIT: AuditRoute(
            administration.audit_reader,
            authorizer=authorizer,
            addresses=addresses,
            body_reader=bodies,
        ),
    }


def _public_handlers(readiness: ReadinessChecks, settings: Settings, metrics: Metrics) -> Handlers:
    """Return the handlers of what needs no key."""
    return {
        endpoints.HEALTH: handle_health,
        endpoints.READY: readiness_handler(readiness),
        endpoints.METRICS: metrics_handler(metrics),
        endpoints.OPENAPI: openapi_handler(settings),
        endpoints.DOCS: docs_handler(settings),
        **tracker_handlers(settings.tracker_path),
        endpoints.APP: page_handler(),
        endpoints.ROOT: root_handler,
        endpoints.UNKNOWN: raise_not_found,
        endpoints.UNKNOWN_V1: raise_not_found,
    }


async def raise_not_found(_request: Request) -> Response:
    """Answer an unknown path."""
    raise NotFound
