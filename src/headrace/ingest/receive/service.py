"""The ingestion use case: from the bytes of a body to a durable record in the log."""

from functools import partial

import msgspec

from headrace.base.clock import Clock
from headrace.base.errors import ClientError, HeadraceError, InvalidIdempotencyKey, Unavailable
from headrace.base.metrics import Metrics
from headrace.ingest.receive.authorizer import Authorizer
from headrace.ingest.receive.decoding.body_decoder import BodyDecoder
from headrace.ingest.receive.decoding.decode import PATH_SPECS, IngestPath
from headrace.ingest.receive.decoding.decode_request import BodyLimits
from headrace.ingest.receive.enrich import Enricher
from headrace.ingest.receive.expiry import ItemExpiry
from headrace.ingest.receive.idempotency import (
    MAX_IDEMPOTENCY_KEY,
    release,
    remember,
    replay,
    request_digest,
)
from headrace.ingest.receive.preparation import (
    AcceptResult,
    IngestRequest,
    Preparation,
    PreparedRequest,
    Progress,
    Reserve,
)
from headrace.model.data_retention import RetentionPolicy
from headrace.ports.background import BackgroundProcess
from headrace.ports.directory import LatestTenancySource
from headrace.ports.event_log import EventLog, OnDurable
from headrace.ports.idempotency import IdempotencyStore, Replay


class IngestService:
    """Accepts requests; used from one event loop by many tasks."""

    def __init__(
        self,
        *,
        clock: Clock,
        tenancy: LatestTenancySource,
        enricher: Enricher,
        log: EventLog,
        idempotency_store: IdempotencyStore,
        metrics: Metrics,
        limits: BodyLimits,
        background: BackgroundProcess,
        retention: RetentionPolicy,
    ) -> None:
        self._clock = clock
        self._authorizer = Authorizer(tenancy)
        self._log = log
        self._idempotency_store = idempotency_store
        self._metrics = metrics
        self._preparation = Preparation(
            clock=clock,
            authorizer=self._authorizer,
            enricher=enricher,
            decoder=BodyDecoder(background),
            limits=limits,
            expiry=ItemExpiry(tenancy, retention),
        )

    async def accept(self, request: IngestRequest, reserve: Reserve) -> AcceptResult:
        """Return once all items are durable; raise where none is, now or later.

        Raises the client's error (the body's before the credentials'), `Unavailable`, or
        `DurabilityUnknown` and `StoreAckTimeout`, after which items may be stored. With an
        Idempotency-Key the first accepted request decides and later ones with a valid body get its
        reply. `reserve` is called before more than the body is kept.
        """
        if len(request.idempotency_key or "") > MAX_IDEMPOTENCY_KEY:
            self._count(request.endpoint, "refused", 1)
            raise InvalidIdempotencyKey
        progress = Progress()
        try:
            prepared = await self._preparation.prepare(request, progress, reserve)
            return await self._append_idempotently(request, prepared)
        except ClientError:
            replayed = await self._find_replay(request, progress)
            if replayed is not None:
                return replayed
            self._count(
                request.endpoint, "refused", 1 if progress.items is None else progress.items
            )
            raise
        except Unavailable:
            self._count(request.endpoint, "refused", progress.items or 0)
            raise

    def try_accept_nowait(
        self, request: IngestRequest, on_durable: OnDurable
    ) -> AcceptResult | None:
        """Append a request to the log without waiting for anything but the log.

        The result counts once `on_durable` is called with None; an error means what it means
        when `accept` raises it. Returns None, without side effects and without a later call of
        `on_durable`, where the request needs another wait or must be refused: use `accept` then.
        """
        if request.idempotency_key:
            return None
        try:
            prepared = self._preparation.prepare_nowait(request)
            if prepared is None or not prepared.record:
                return None
            # Bind the endpoint, not the request: its body can be freed before the fsync.
            count = prepared.result.count
            callback = partial(self._on_durable, on_durable, request.endpoint, count)
            self._log.append_nowait(prepared.record, callback)
        except HeadraceError:
            return None
        return prepared.result

    def _on_durable(
        self, on_durable: OnDurable, endpoint: IngestPath, items: int, failure: HeadraceError | None
    ) -> None:
        if isinstance(failure, Unavailable):
            self._count(endpoint, "refused", items)
        on_durable(failure)

    async def _append_idempotently(
        self, request: IngestRequest, prepared: PreparedRequest
    ) -> AcceptResult:
        if not prepared.idempotency_digest:
            return await self._append(prepared)
        claim = await self._idempotency_store.acquire(prepared.idempotency_digest)
        if isinstance(claim, Replay):
            return self._replay(request, claim.response)
        try:
            result = await self._append(prepared)
        except BaseException:
            await release(self._idempotency_store, prepared.idempotency_digest)
            raise
        await remember(
            self._idempotency_store, prepared.idempotency_digest, msgspec.json.encode(result)
        )
        return result

    async def _append(self, prepared: PreparedRequest) -> AcceptResult:
        """Append the record. An empty batch has none."""
        if prepared.record:
            await self._log.append(prepared.record)
        return prepared.result

    async def _find_replay(self, request: IngestRequest, progress: Progress) -> AcceptResult | None:
        """Return the remembered reply for the same caller and key.

        It wins over a refusal, but not over that of an invalid body.
        """
        if not request.idempotency_key or progress.items is None:
            return None
        try:
            caller = await self._authorizer.authenticate(
                request.credentials,
                now_ms=self._clock.now_ms(),
                item_website_id=progress.first_website_id,
            )
            digest = request_digest(caller, request.endpoint.value, request.idempotency_key)
            response = await replay(self._idempotency_store, digest)
        except HeadraceError:
            return None  # the refusal at hand says more to the client
        return None if response is None else self._replay(request, response)

    def _replay(self, request: IngestRequest, response: bytes) -> AcceptResult:
        result = msgspec.json.decode(response, type=AcceptResult)
        self._count(request.endpoint, "repeated", result.count)
        return result

    def _count(self, endpoint: IngestPath, outcome: str, items: int) -> None:
        event_kind = PATH_SPECS[endpoint].event_kind
        self._metrics.count("headrace_items_total", items, event_kind.value, outcome)
