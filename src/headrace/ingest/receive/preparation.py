"""From a request to the record that is appended: decode, authorize, enrich, convert."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.errors import HeadraceError
from headrace.ingest.receive.authorize import Caller
from headrace.ingest.receive.authorizer import Authorizer
from headrace.ingest.receive.convert import AuthorizedBatch, convert_batch
from headrace.ingest.receive.decoding.body_decoder import BodyDecoder
from headrace.ingest.receive.decoding.decode import PATH_SPECS, IngestPath
from headrace.ingest.receive.decoding.decode_request import (
    BodyLimits,
    DecodedRequest,
    try_decode_request,
)
from headrace.ingest.receive.draft import (
    BodyToDecode,
    Decompress,
    RecordDraft,
    finish_record,
    item_event_ids,
    make_draft,
)
from headrace.ingest.receive.enrich import NO_ENRICHMENT, Enricher, Enrichment
from headrace.ingest.receive.expiry import ItemExpiry
from headrace.ingest.receive.idempotency import request_digest
from headrace.model.log_records import encode_record
from headrace.model.tenancy import Credentials


class IngestRequest(Struct):
    """One ingestion request, free of HTTP.

    `body` is complete; `decompress` decodes its Content-Encoding, and is None where that is done.
    The use case takes the body out, so that it is freed while the request waits. `address` is the
    client's, behind trusted proxies. `idempotency_key` is None where the header is missing.
    """

    endpoint: IngestPath
    body: bytes
    credentials: Credentials
    address: str
    user_agent: str = ""
    idempotency_key: str | None = None
    decompress: Decompress | None = None

    def take_body(self) -> bytes:
        """Return the body, and keep it no longer."""
        body, self.body = self.body, b""
        return body


class AcceptResult(Struct, frozen=True):
    """The result of an accepted request. `count` is the number of its items.

    `event_ids` is for /batch only: one per item, None where the item has none.
    """

    count: int
    event_ids: tuple[str | None, ...] = ()


Reserve = Callable[[int], None]
"""Charges more memory to a request, in bytes; raises `Unavailable` where there is none."""


class PreparedRequest(Struct, frozen=True):
    """A request that is ready to be appended. `record` is empty where it has no items."""

    record: bytes
    result: AcceptResult
    idempotency_digest: bytes = b""


class Progress:
    """What is known of a request's items when it is refused."""

    def __init__(self) -> None:
        self.items: int | None = None
        self.first_website_id: str | None = None

    def note(self, website_ids: Sequence[str | None]) -> None:
        """Record the items of the decoded body by their websites."""
        self.items = len(website_ids)
        self.first_website_id = website_ids[0] if website_ids else None


class Preparation:
    """Makes the records of requests; used from one event loop by many tasks."""

    def __init__(
        self,
        *,
        clock: Clock,
        authorizer: Authorizer,
        enricher: Enricher,
        decoder: BodyDecoder,
        limits: BodyLimits,
        expiry: ItemExpiry,
    ) -> None:
        self._clock = clock
        self._expiry = expiry
        self._authorizer = authorizer
        self._enricher = enricher
        self._decoder = decoder
        self._limits = limits

    def prepare_nowait(self, request: IngestRequest) -> PreparedRequest | None:
        """Make the record of a request without waiting, or return None without side effects.

        None means that it needs a wait or must be refused. Raises `HeadraceError` for the same.
        """
        decoded = try_decode_request(
            request.endpoint,
            request.body,
            received_ms=self._clock.now_ms(),
            has_api_key=request.credentials.api_key is not None,
            limits=self._limits,
        )
        return None if decoded is None else self._prepare_now(request, decoded)

    async def prepare(
        self, request: IngestRequest, progress: Progress, reserve: Reserve
    ) -> PreparedRequest:
        """Decode and authorize a request. Keeps nothing that was decoded while it waits."""
        to_decode = self._take_body(request)
        decoded = await self._decoder.try_on_loop(to_decode)
        if decoded is None:
            draft = await self._decode_in_background(request, to_decode, progress)
            reserve(draft.decoded_bytes)
        else:
            progress.note(decoded.website_ids())
            prepared = self._prepare_now(request, decoded)
            if prepared is not None:
                return prepared
            draft = make_draft(
                request.endpoint, decoded, has_api_key=request.credentials.api_key is not None
            )
            del decoded
        del to_decode
        return await self._prepare_draft(request, draft)

    def _take_body(self, request: IngestRequest) -> BodyToDecode:
        return BodyToDecode(
            request.endpoint,
            request.take_body(),
            received_ms=self._clock.now_ms(),
            has_api_key=request.credentials.api_key is not None,
            limits=self._limits,
            decompress=request.decompress,
        )

    async def _decode_in_background(
        self, request: IngestRequest, to_decode: BodyToDecode, progress: Progress
    ) -> RecordDraft:
        """Decode a large body. Raises the body's own error before that of the credentials."""
        credentials, now_ms = request.credentials, to_decode.received_ms
        refusal = await self._authorizer.find_refusal(credentials, now_ms=now_ms)
        if refusal is not None:
            to_decode = msgspec.structs.replace(to_decode, wants_record=False)
        draft = await self._decoder.in_background(
            to_decode, goes_first=self._authorizer.has_valid_key(credentials, now_ms=now_ms)
        )
        progress.note(draft.item_website_ids())
        if refusal is not None:
            raise refusal
        return draft

    def _prepare_now(
        self, request: IngestRequest, decoded: DecodedRequest
    ) -> PreparedRequest | None:
        """Make the record without waiting; None where it needs a wait, or must be refused."""
        try:
            authorization = self._authorizer.now(
                request.credentials, now_ms=decoded.received_ms, website_ids=decoded.website_ids()
            )
        except HeadraceError:
            return None
        items = decoded.items
        enrichment: Enrichment | None = NO_ENRICHMENT
        if decoded.reports_visitors:
            enrichment = self._enricher.enrich_from_items_nowait(items)
        elif items and authorization.caller.key is None:
            enrichment = self._enricher.enrich_client_nowait(
                has_anonymous_ids=decoded.has_anonymous_ids(),
                website_id=authorization.websites[0],
                address=request.address,
                user_agent=request.user_agent,
                now_ms=decoded.received_ms,
            )
        if enrichment is None:
            return None
        digest = (
            _idempotency_digest(request, authorization.caller) if request.idempotency_key else b""
        )
        expired = self._expiry.find_expired(
            PATH_SPECS[request.endpoint].event_kind,
            authorization.websites,
            decoded.timestamps_ms,
            received_ms=decoded.received_ms,
        )
        if expired and not self._expiry.is_latest():
            return None
        batch = AuthorizedBatch(
            received_ms=decoded.received_ms,
            items=items,
            timestamps_ms=decoded.timestamps_ms,
            websites=authorization.websites,
            enrichment=enrichment,
            has_api_key=request.credentials.api_key is not None,
            idempotency_digest=digest,
            expired=expired,
        )
        record = encode_record(convert_batch(request.endpoint, batch)) if items else b""
        result = AcceptResult(len(items), item_event_ids(request.endpoint, decoded))
        return PreparedRequest(record, result, digest)

    async def _prepare_draft(self, request: IngestRequest, draft: RecordDraft) -> PreparedRequest:
        """Make the record from a draft, whatever has to be waited for."""
        authorization = await self._authorizer.retrying(
            request.credentials, now_ms=draft.received_ms, website_ids=draft.item_website_ids()
        )
        digest = _idempotency_digest(request, authorization.caller)
        result = AcceptResult(draft.count, tuple(draft.event_ids))
        if not draft.count:
            return PreparedRequest(b"", result, digest)
        if authorization.caller.key is not None:
            enrichment = await self._enricher.enrich_from_items(draft.reported_visitors)
        else:
            enrichment = await self._enricher.enrich_client(
                has_anonymous_ids=draft.has_anonymous_ids,
                website_id=authorization.websites[0],
                address=request.address,
                user_agent=request.user_agent,
                now_ms=draft.received_ms,
            )
        await self._expiry.follow_latest()
        record = finish_record(
            draft,
            websites=authorization.websites,
            enrichment=enrichment,
            idempotency_digest=digest,
            find_expired=lambda timestamps_ms: self._expiry.find_expired(
                PATH_SPECS[request.endpoint].event_kind,
                authorization.websites,
                timestamps_ms,
                received_ms=draft.received_ms,
            ),
        )
        return PreparedRequest(record, result, digest)


def _idempotency_digest(request: IngestRequest, caller: Caller) -> bytes:
    if not request.idempotency_key:
        return b""
    return request_digest(caller, request.endpoint.value, request.idempotency_key)
