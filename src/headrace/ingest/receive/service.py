"""The accepting use case: from body bytes to a record in the log, in one visible order."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import (
    ClientError,
    HeadraceError,
    InvalidApiKey,
    InvalidBody,
    InvalidIdempotencyKey,
    Unavailable,
    WebsiteNotFound,
)
from headrace.base.telemetry import Metrics
from headrace.ingest.receive.authorize import (
    Authorization,
    Caller,
    authenticate,
    authorize,
    authorize_origin,
)
from headrace.ingest.receive.convert import AuthorizedBatch, convert_batch
from headrace.ingest.receive.decode import (
    PATH_SPECS,
    IngestPath,
    WireItem,
    decode_items,
    list_field_errors,
)
from headrace.ingest.receive.enrich import VISITOR_CHECKS, Enricher, Enrichment, check_visitors
from headrace.ingest.receive.idempotency import (
    MAX_IDEMPOTENCY_KEY,
    remember,
    replay,
    request_digest,
)
from headrace.ingest.receive.timestamps import parse_timestamp, parse_timestamps
from headrace.ingest.receive.validation_errors import Check
from headrace.model.log_records import encode_record
from headrace.model.tenancy import Credentials, TenancySnapshot
from headrace.ports.directory import TenancySource
from headrace.ports.event_log import EventLog, OnDurable
from headrace.ports.idempotency import IdempotencyStore, Replay

Decision = TypeVar("Decision")


class IngestRequest(Struct, frozen=True):
    """One ingestion call as HTTP understood it. `address` is the client's, proxies seen through.

    `body` is whole and decompressed; `idempotency_key` is None where none was sent.
    """

    endpoint: IngestPath
    body: bytes
    credentials: Credentials
    address: str
    user_agent: str = ""
    idempotency_key: str | None = None


class AcceptResult(Struct, frozen=True):
    """What became of a call: the items that were taken.

    `event_ids` is for /batch alone: one for each item, None where none was sent.
    """

    count: int
    event_ids: tuple[str | None, ...] = ()


class _DecodedRequest(Struct, frozen=True):
    """A body that stood up to every rule that needs no credentials."""

    received_ms: int
    items: Sequence[WireItem]
    timestamps_ms: Sequence[int]


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
        self._tenancy = tenancy
        self._enricher = enricher
        self._log = log
        self._idempotency_store = idempotency_store
        self._metrics = metrics
        self._max_items = max_items

    async def accept(self, request: IngestRequest) -> AcceptResult:
        """Return when all items are durable; raise when none of them is, now or later.

        Raises the caller's error, the body's before the credentials', or `Unavailable`. With an
        Idempotency-Key the first accepted request decides, and later ones get its reply.
        """
        if len(request.idempotency_key or "") > MAX_IDEMPOTENCY_KEY:
            self._count(request.endpoint, "refused", 1)
            raise InvalidIdempotencyKey
        items: Sequence[WireItem] | None = None
        try:
            decoded = self._decode(request)
            items = decoded.items
            authorization = await self._authorize(request, decoded)
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
        """Hand a request to the log, where nothing else has to be waited for.

        Returns what is accepted once `on_durable` hears None; with an error none of it is, as where
        `accept` raises. Returns None where it takes more than that, or where anything is wrong:
        then nothing has happened, nobody is told, and `accept` decides.
        """
        if request.idempotency_key:
            return None
        try:
            decoded = self._decode(request)
            authorization = self._authorize_with(self._tenancy.current(), request, decoded)
            if not decoded.items:
                return None
            enrichment = self._enrich_nowait(request, decoded, authorization)
            if enrichment is None:
                return None
            record = _build_record(request, decoded, authorization, enrichment)
            result = _build_result(request, decoded)
            # Not the request: its body has done its work, and the next one can have its memory.
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

    def _decode(self, request: IngestRequest) -> _DecodedRequest:
        """Decode the body and check everything that needs no credentials."""
        received_ms = self._clock.now_ms()
        has_api_key = request.credentials.api_key is not None
        checks = _field_checks(received_ms, has_api_key=has_api_key)
        items = decode_items(
            request.endpoint, request.body, max_items=self._max_items, checks=checks
        )
        try:
            sent = [item.timestamp for item in items]
            timestamps_ms = parse_timestamps(sent, received_ms=received_ms)
            if has_api_key:
                check_visitors(items)
        except ValueError as error:
            field_errors = list_field_errors(request.endpoint, request.body, checks=checks)
            raise InvalidBody(field_errors) from error
        return _DecodedRequest(received_ms, items, timestamps_ms)

    async def _authorize(self, request: IngestRequest, decoded: _DecodedRequest) -> Authorization:
        return await self._retry_if_stale(
            lambda tenancy: self._authorize_with(tenancy, request, decoded)
        )

    @staticmethod
    def _authorize_with(
        tenancy: TenancySnapshot, request: IngestRequest, decoded: _DecodedRequest
    ) -> Authorization:
        return authorize(
            tenancy,
            now_ms=decoded.received_ms,
            credentials=request.credentials,
            website_ids=[item.website_id for item in decoded.items],
        )

    async def _retry_if_stale(self, decide: Callable[[TenancySnapshot], Decision]) -> Decision:
        """Decide; and again, once, where the reason may be that the snapshot is too old."""
        known = self._tenancy.current()
        try:
            return decide(known)
        except (InvalidApiKey, WebsiteNotFound, InvalidBody):
            newest = await self._tenancy.refreshed()
            if newest.revision == known.revision:
                raise
        return decide(newest)

    async def _append_idempotently(
        self, request: IngestRequest, decoded: _DecodedRequest, authorization: Authorization
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
        decoded: _DecodedRequest,
        authorization: Authorization,
        *,
        idempotency_digest: bytes = b"",
    ) -> AcceptResult:
        """Enrich, convert, append. An empty batch leaves nothing in the log."""
        if decoded.items:
            enrichment = await self._enrich(request, decoded, authorization)
            record = _build_record(
                request, decoded, authorization, enrichment, idempotency_digest=idempotency_digest
            )
            await self._log.append(record)
        return _build_result(request, decoded)

    async def _enrich(
        self, request: IngestRequest, decoded: _DecodedRequest, authorization: Authorization
    ) -> Enrichment:
        if authorization.caller.key is not None:
            return self._enricher.enrich_from_items(decoded.items)
        return await self._enricher.enrich_client(
            decoded.items,
            website_id=authorization.websites[0],
            address=request.address,
            user_agent=request.user_agent,
            now_ms=decoded.received_ms,
        )

    def _enrich_nowait(
        self, request: IngestRequest, decoded: _DecodedRequest, authorization: Authorization
    ) -> Enrichment | None:
        """Do what `_enrich` does, or return None where something has to be waited for."""
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
        """Find the reply that wins over a refusal: one remembered for the same caller and key."""
        if not request.idempotency_key:
            return None
        try:
            caller = await self._authenticate(request, items[0].website_id if items else None)
            digest = request_digest(caller, request.endpoint.value, request.idempotency_key)
            response = await replay(self._idempotency_store, digest)
        except HeadraceError:
            return None  # the refusal that there is says more
        return None if response is None else self._replay(request, response)

    async def _authenticate(self, request: IngestRequest, item_website_id: str | None) -> Caller:
        now_ms = self._clock.now_ms()
        caller = await self._retry_if_stale(
            lambda tenancy: authenticate(
                tenancy,
                now_ms=now_ms,
                credentials=request.credentials,
                item_website_id=item_website_id,
            )
        )
        authorize_origin(caller, request.credentials)
        return caller

    def _replay(self, request: IngestRequest, response: bytes) -> AcceptResult:
        result = msgspec.json.decode(response, type=AcceptResult)
        self._count(request.endpoint, "repeated", result.count)
        return result

    def _count(self, endpoint: IngestPath, outcome: str, items: int) -> None:
        event_kind = PATH_SPECS[endpoint].event_kind
        self._metrics.count("headrace_items_total", items, event_kind.value, outcome)


def _build_record(
    request: IngestRequest,
    decoded: _DecodedRequest,
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


def _build_result(request: IngestRequest, decoded: _DecodedRequest) -> AcceptResult:
    return AcceptResult(len(decoded.items), _event_ids(request.endpoint, decoded.items))


def _event_ids(endpoint: IngestPath, items: Sequence[WireItem]) -> tuple[str | None, ...]:
    if endpoint is not IngestPath.BATCH:
        return ()
    return tuple([item.event_id or None for item in items])


@lru_cache(maxsize=2)
def _field_checks(received_ms: int, *, has_api_key: bool) -> Mapping[str, Check]:
    """Return the rules that a field's type cannot tell: the same to all calls of a millisecond."""
    check_timestamp = partial(parse_timestamp, received_ms=received_ms)
    return (
        {"timestamp": check_timestamp, **VISITOR_CHECKS}
        if has_api_key
        else {"timestamp": check_timestamp}
    )
