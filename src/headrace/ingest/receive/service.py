"""The ingestion use case: from the bytes of a body to a durable record in the log."""

from collections.abc import Sequence
from functools import partial

import msgspec
from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import ClientError, HeadraceError, InvalidIdempotencyKey, Unavailable
from headrace.base.telemetry import Metrics
from headrace.ingest.receive.authorize import Authorization
from headrace.ingest.receive.authorizer import Authorizer
from headrace.ingest.receive.convert import AuthorizedBatch, convert_batch
from headrace.ingest.receive.decode import PATH_SPECS, IngestPath, WireItem
from headrace.ingest.receive.decode_request import DecodedRequest, decode_request
from headrace.ingest.receive.enrich import Enricher, Enrichment
from headrace.ingest.receive.idempotency import (
    MAX_IDEMPOTENCY_KEY,
    remember,
    replay,
    request_digest,
)
from headrace.model.log_records import encode_record
from headrace.model.tenancy import Credentials
from headrace.ports.directory import TenancySource
from headrace.ports.event_log import EventLog, OnDurable
from headrace.ports.idempotency import IdempotencyStore, Replay


class IngestRequest(Struct, frozen=True):
    """One ingestion request, free of HTTP.

    `body` is complete and decompressed. `address` is the client's, behind trusted proxies.
    `idempotency_key` is None where the header is missing.
    """

    endpoint: IngestPath
    body: bytes
    credentials: Credentials
    address: str
    user_agent: str = ""
    idempotency_key: str | None = None


class AcceptResult(Struct, frozen=True):
    """The result of an accepted request. `count` is the number of its items.

    `event_ids` is for /batch only: one per item, None where the item has none.
    """

    count: int
    event_ids: tuple[str | None, ...] = ()


class IngestService:
    """Accepts requests; used from one event loop by many tasks."""

    def __init__(
        self,
        *,
        clock: Clock,
        tenancy: TenancySource,
        enricher: Enricher,
        log: EventLog,
        idempotency_store: IdempotencyStore,
        metrics: Metrics,
        max_items: int,
    ) -> None:
        self._clock = clock
        self._authorizer = Authorizer(tenancy)
        self._enricher = enricher
        self._log = log
        self._idempotency_store = idempotency_store
        self._metrics = metrics
        self._max_items = max_items

    async def accept(self, request: IngestRequest) -> AcceptResult:
        """Return once all items are durable; raise where none is, now or later.

        Raises the client's error (the body's before the credentials'), `Unavailable`, or
        `DurabilityUnknown` and `StoreAckTimeout`, after which items may be stored. With an
        Idempotency-Key the first accepted request decides and later ones get its reply.
        """
        if len(request.idempotency_key or "") > MAX_IDEMPOTENCY_KEY:
            self._count(request.endpoint, "refused", 1)
            raise InvalidIdempotencyKey
        items: Sequence[WireItem] | None = None
        try:
            decoded = self._decode(request)
            items = decoded.items
            authorization = await self._authorizer.retrying(request.credentials, decoded)
            return await self._append_idempotently(request, decoded, authorization)
        except ClientError:
            replayed = await self._find_replay(request, items)
            if replayed is not None:
                return replayed
            self._count(request.endpoint, "refused", 1 if items is None else len(items))
            raise
        except Unavailable:
            self._count(request.endpoint, "refused", 0 if items is None else len(items))
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
            decoded = self._decode(request)
            authorization = self._authorizer.now(request.credentials, decoded)
            if not decoded.items:
                return None
            enrichment = self._enrich_nowait(request, decoded, authorization)
            if enrichment is None:
                return None
            record = _build_record(request, decoded, authorization, enrichment)
            result = _build_result(request, decoded)
            # Bind the endpoint, not the request: its body can be freed before the fsync.
            callback = partial(self._on_durable, on_durable, request.endpoint, result.count)
            self._log.append_nowait(record, callback)
        except HeadraceError:
            return None
        return result

    def _on_durable(
        self, on_durable: OnDurable, endpoint: IngestPath, items: int, failure: HeadraceError | None
    ) -> None:
        if isinstance(failure, Unavailable):
            self._count(endpoint, "refused", items)
        on_durable(failure)

    def _decode(self, request: IngestRequest) -> DecodedRequest:
        return decode_request(
            request.endpoint,
            request.body,
            received_ms=self._clock.now_ms(),
            has_api_key=request.credentials.api_key is not None,
            max_items=self._max_items,
        )

    async def _append_idempotently(
        self, request: IngestRequest, decoded: DecodedRequest, authorization: Authorization
    ) -> AcceptResult:
        if not request.idempotency_key:
            return await self._append(request, decoded, authorization)
        digest = request_digest(
            authorization.caller, request.endpoint.value, request.idempotency_key
        )
        claim = await self._idempotency_store.acquire(digest)
        if isinstance(claim, Replay):
            return self._replay(request, claim.response)
        try:
            result = await self._append(request, decoded, authorization, idempotency_digest=digest)
        except BaseException:
            await self._idempotency_store.release(digest)
            raise
        await remember(self._idempotency_store, digest, msgspec.json.encode(result))
        return result

    async def _append(
        self,
        request: IngestRequest,
        decoded: DecodedRequest,
        authorization: Authorization,
        *,
        idempotency_digest: bytes = b"",
    ) -> AcceptResult:
        """Enrich, convert and append. An empty batch appends no record."""
        if decoded.items:
            enrichment = await self._enrich(request, decoded, authorization)
            record = _build_record(
                request, decoded, authorization, enrichment, idempotency_digest=idempotency_digest
            )
            await self._log.append(record)
        return _build_result(request, decoded)

    async def _enrich(
        self, request: IngestRequest, decoded: DecodedRequest, authorization: Authorization
    ) -> Enrichment:
        enrichment = self._enrich_nowait(request, decoded, authorization)
        if enrichment is not None:
            return enrichment
        return await self._enricher.enrich_client(
            decoded.items,
            website_id=authorization.websites[0],
            address=request.address,
            user_agent=request.user_agent,
            now_ms=decoded.received_ms,
        )

    def _enrich_nowait(
        self, request: IngestRequest, decoded: DecodedRequest, authorization: Authorization
    ) -> Enrichment | None:
        """Enrich, or return None where today's visitor salt must be fetched first."""
        if authorization.caller.key is not None:
            return self._enricher.enrich_from_items(decoded.items)
        return self._enricher.enrich_client_nowait(
            decoded.items,
            website_id=authorization.websites[0],
            address=request.address,
            user_agent=request.user_agent,
            now_ms=decoded.received_ms,
        )

    async def _find_replay(
        self, request: IngestRequest, items: Sequence[WireItem] | None
    ) -> AcceptResult | None:
        """Return the remembered reply for the same caller and key; it wins over a refusal."""
        if not request.idempotency_key:
            return None
        try:
            caller = await self._authorizer.authenticate(
                request.credentials,
                now_ms=self._clock.now_ms(),
                item_website_id=items[0].website_id if items else None,
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


def _build_record(
    request: IngestRequest,
    decoded: DecodedRequest,
    authorization: Authorization,
    enrichment: Enrichment,
    *,
    idempotency_digest: bytes = b"",
) -> bytes:
    batch = AuthorizedBatch(
        received_ms=decoded.received_ms,
        items=decoded.items,
        timestamps_ms=decoded.timestamps_ms,
        websites=authorization.websites,
        enrichment=enrichment,
        idempotency_digest=idempotency_digest,
    )
    return encode_record(convert_batch(request.endpoint, batch))


def _build_result(request: IngestRequest, decoded: DecodedRequest) -> AcceptResult:
    items = decoded.items
    if request.endpoint is not IngestPath.BATCH:
        return AcceptResult(len(items))
    return AcceptResult(len(items), tuple([item.event_id or None for item in items]))
