"""The accepting use case: from body bytes to a record in the log, in one visible order."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import (
    CallerError,
    HeadraceError,
    InvalidApiKey,
    InvalidBody,
    InvalidIdempotencyKey,
    Unavailable,
    WebsiteNotFound,
)
from headrace.base.telemetry import Metrics
from headrace.ingest.receive.authorize import Admission, Caller, admit, admit_caller, check_origin
from headrace.ingest.receive.convert import AdmittedBatch, convert_batch
from headrace.ingest.receive.decode import (
    BODY_RULES,
    Endpoint,
    WireItem,
    decode_items,
    explain_faults,
)
from headrace.ingest.receive.enrich import VISITOR_CHECKS, Enricher, Enrichment, check_visitors
from headrace.ingest.receive.idempotency import MAX_IDEMPOTENCY_KEY, digest_of, keep, recall
from headrace.ingest.receive.timestamps import parse_timestamp, parse_timestamps
from headrace.ingest.receive.validation_errors import Check
from headrace.model.log_records import encode_record
from headrace.model.tenancy import Credentials, Tenancy
from headrace.ports.directory import TenancySource
from headrace.ports.event_log import EventLog, Told
from headrace.ports.idempotency import Remembered, Repeats

Decision = TypeVar("Decision")


class IngestRequest(Struct, frozen=True):
    """One ingestion call as HTTP understood it. `address` is the client's, proxies seen through.

    `body` is whole and decompressed; `idempotency_key` is None where none was sent.
    """

    endpoint: Endpoint
    body: bytes
    credentials: Credentials
    address: str
    user_agent: str = ""
    idempotency_key: str | None = None


class Accepted(Struct, frozen=True):
    """What became of a call: the items that were taken.

    `event_ids` is for /batch alone: one for each item, None where none was sent.
    """

    count: int
    event_ids: tuple[str | None, ...] = ()


class _Received(Struct, frozen=True):
    """A body that stood up to every rule that needs no credentials."""

    received_ms: int
    items: Sequence[WireItem]
    moments_ms: Sequence[int]


class Acceptor:
    """Accepts requests; used from one event loop by many tasks."""

    def __init__(
        self,
        *,
        clock: Clock,
        tenancy: TenancySource,
        enricher: Enricher,
        log: EventLog,
        repeats: Repeats,
        metrics: Metrics,
        max_items: int,
    ) -> None:
        self._clock = clock
        self._tenancy = tenancy
        self._enricher = enricher
        self._log = log
        self._repeats = repeats
        self._metrics = metrics
        self._max_items = max_items

    async def accept(self, request: IngestRequest) -> Accepted:
        """Return when all items are durable; raise when none of them is, now or later.

        Raises the caller's error, the body's before the credentials', or `Unavailable`. With an
        Idempotency-Key the first accepted request decides, and later ones get its reply.
        """
        if len(request.idempotency_key or "") > MAX_IDEMPOTENCY_KEY:
            self._count(request.endpoint, "refused", 1)
            raise InvalidIdempotencyKey
        items: Sequence[WireItem] | None = None
        try:
            received = self._receive(request)
            items = received.items
            admission = await self._admit(request, received)
            return await self._store_once(request, received, admission)
        except CallerError:
            remembered = await self._recall(request, items)
            if remembered is not None:
                return remembered
            self._count(request.endpoint, "refused", 1 if items is None else len(items))
            raise
        except Unavailable:
            self._count(request.endpoint, "refused", 0 if items is None else len(items))
            raise

    def accept_directly(self, request: IngestRequest, told: Told) -> Accepted | None:
        """Hand a request to the log, where nothing else has to be waited for.

        Returns what is accepted once `told` hears None; with an error none of it is, as where
        `accept` raises. Returns None where it takes more than that, or where anything is wrong:
        then nothing has happened, nobody is told, and `accept` decides.
        """
        if request.idempotency_key:
            return None
        try:
            received = self._receive(request)
            admission = self._admit_to(self._tenancy.current(), request, received)
            if not received.items:
                return None
            enrichment = self._enrich_directly(request, received, admission)
            if enrichment is None:
                return None
            record = _record_of(request, received, admission, enrichment)
            accepted = _accepted(request, received)
            # Not the request: its body has done its work, and the next one can have its memory.
            tell = partial(self._tell, told, request.endpoint, accepted.count)
            self._log.hand_in(record, tell)
        except HeadraceError:
            return None
        return accepted

    def _tell(
        self, told: Told, endpoint: Endpoint, items: int, failure: HeadraceError | None
    ) -> None:
        if isinstance(failure, Unavailable):
            self._count(endpoint, "refused", items)
        told(failure)

    def _receive(self, request: IngestRequest) -> _Received:
        """Decode the body and check everything that needs no credentials."""
        received_ms = self._clock.now_ms()
        with_key = request.credentials.api_key is not None
        checks = _checks(received_ms, with_key=with_key)
        items = decode_items(
            request.endpoint, request.body, max_items=self._max_items, checks=checks
        )
        try:
            sent = [item.timestamp for item in items]
            moments_ms = parse_timestamps(sent, received_ms=received_ms)
            if with_key:
                check_visitors(items)
        except ValueError as error:
            faults = explain_faults(request.endpoint, request.body, checks=checks)
            raise InvalidBody(faults) from error
        return _Received(received_ms, items, moments_ms)

    async def _admit(self, request: IngestRequest, received: _Received) -> Admission:
        return await self._decide(lambda tenancy: self._admit_to(tenancy, request, received))

    @staticmethod
    def _admit_to(tenancy: Tenancy, request: IngestRequest, received: _Received) -> Admission:
        return admit(
            tenancy,
            now_ms=received.received_ms,
            credentials=request.credentials,
            named=[item.website_id for item in received.items],
        )

    async def _decide(self, decide: Callable[[Tenancy], Decision]) -> Decision:
        """Decide; and again, once, where the reason may be that the snapshot is too old."""
        known = self._tenancy.current()
        try:
            return decide(known)
        except (InvalidApiKey, WebsiteNotFound, InvalidBody):
            newest = await self._tenancy.refreshed()
            if newest.revision == known.revision:
                raise
        return decide(newest)

    async def _store_once(
        self, request: IngestRequest, received: _Received, admission: Admission
    ) -> Accepted:
        if not request.idempotency_key:
            return await self._store(request, received, admission)
        digest = digest_of(admission.caller, request.endpoint.value, request.idempotency_key)
        claim = await self._repeats.claim(digest)
        if isinstance(claim, Remembered):
            return self._repeat(request, claim.reply)
        try:
            accepted = await self._store(request, received, admission, repeat_key=digest)
        except BaseException:
            await self._repeats.release(digest)
            raise
        await keep(self._repeats, digest, msgspec.json.encode(accepted))
        return accepted

    async def _store(
        self,
        request: IngestRequest,
        received: _Received,
        admission: Admission,
        *,
        repeat_key: bytes = b"",
    ) -> Accepted:
        """Enrich, convert, append. An empty batch leaves nothing in the log."""
        if received.items:
            enrichment = await self._enrich(request, received, admission)
            record = _record_of(request, received, admission, enrichment, repeat_key=repeat_key)
            await self._log.append(record)
        return _accepted(request, received)

    async def _enrich(
        self, request: IngestRequest, received: _Received, admission: Admission
    ) -> Enrichment:
        if admission.caller.key is not None:
            return self._enricher.enrich_named(received.items)
        return await self._enricher.enrich_client(
            received.items,
            website_id=admission.websites[0],
            address=request.address,
            user_agent=request.user_agent,
            now_ms=received.received_ms,
        )

    def _enrich_directly(
        self, request: IngestRequest, received: _Received, admission: Admission
    ) -> Enrichment | None:
        """Do what `_enrich` does, or return None where something has to be waited for."""
        if admission.caller.key is not None:
            return self._enricher.enrich_named(received.items)
        return self._enricher.enrich_client_directly(
            received.items,
            website_id=admission.websites[0],
            address=request.address,
            user_agent=request.user_agent,
            now_ms=received.received_ms,
        )

    async def _recall(
        self, request: IngestRequest, items: Sequence[WireItem] | None
    ) -> Accepted | None:
        """Find the reply that wins over a refusal: one remembered for the same caller and key."""
        if not request.idempotency_key:
            return None
        try:
            caller = await self._admit_caller(request, items[0].website_id if items else None)
            digest = digest_of(caller, request.endpoint.value, request.idempotency_key)
            reply = await recall(self._repeats, digest)
        except HeadraceError:
            return None  # the refusal that there is says more
        return None if reply is None else self._repeat(request, reply)

    async def _admit_caller(self, request: IngestRequest, named: str | None) -> Caller:
        now_ms = self._clock.now_ms()
        caller = await self._decide(
            lambda tenancy: admit_caller(
                tenancy, now_ms=now_ms, credentials=request.credentials, named=named
            )
        )
        check_origin(caller, request.credentials)
        return caller

    def _repeat(self, request: IngestRequest, reply: bytes) -> Accepted:
        accepted = msgspec.json.decode(reply, type=Accepted)
        self._count(request.endpoint, "repeated", accepted.count)
        return accepted

    def _count(self, endpoint: Endpoint, outcome: str, items: int) -> None:
        stream = BODY_RULES[endpoint].stream
        self._metrics.count("headrace_items_total", items, stream.value, outcome)


def _record_of(
    request: IngestRequest,
    received: _Received,
    admission: Admission,
    enrichment: Enrichment,
    *,
    repeat_key: bytes = b"",
) -> bytes:
    batch = AdmittedBatch(
        received_ms=received.received_ms,
        items=received.items,
        moments_ms=received.moments_ms,
        websites=admission.websites,
        enrichment=enrichment,
        repeat_key=repeat_key,
    )
    return encode_record(convert_batch(request.endpoint, batch))


def _accepted(request: IngestRequest, received: _Received) -> Accepted:
    return Accepted(len(received.items), _event_ids(request.endpoint, received.items))


def _event_ids(endpoint: Endpoint, items: Sequence[WireItem]) -> tuple[str | None, ...]:
    if endpoint is not Endpoint.BATCH:
        return ()
    return tuple([item.event_id or None for item in items])


@lru_cache(maxsize=2)
def _checks(received_ms: int, *, with_key: bool) -> Mapping[str, Check]:
    """Return the rules that a field's type cannot tell: the same to all calls of a millisecond."""
    moment = partial(parse_timestamp, received_ms=received_ms)
    return {"timestamp": moment, **VISITOR_CHECKS} if with_key else {"timestamp": moment}
