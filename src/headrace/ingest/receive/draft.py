"""The part of a record that needs no credentials, as bytes that can be kept while it waits.

What decoding makes of a body takes many times its memory. A request that has to wait for its
authorization keeps a draft, which is about as large as its body.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from headrace.ingest.receive.convert import AuthorizedBatch, convert_batch
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ingest.receive.decoding.decode_request import (
    BodyLimits,
    DecodedRequest,
    decode_request,
)
from headrace.ingest.receive.enrich import NO_ENRICHMENT, Enrichment
from headrace.model.log_records import ErrorEvent, Event, Vital, decode_record, encode_record
from headrace.model.tenancy import WebsiteId

Decompress = Callable[[bytes, int], bytes]
"""Decodes a Content-Encoding to at most so many bytes. Raises `PayloadTooLarge`, `InvalidBody`."""


FindExpired = Callable[[Sequence[int]], tuple[int, ...]]
"""Returns the indexes of the items that are too old to be stored, from their timestamps."""


class ReportedVisitor(Struct, frozen=True):
    """What an item of a call with a key says of its visitor."""

    ip: str | None
    user_agent: str | None


class RecordDraft(Struct, frozen=True):
    """A decoded request without its decoded items.

    `payload` is a record without visitors whose items have no website and no anonymous id but
    their own; it is empty where there are no items. `website_ids` and `reported_visitors` have an
    entry for each item, or none at all where no item has one; `event_ids` are for /batch only.
    """

    received_ms: int
    count: int
    payload: bytes
    website_ids: Sequence[str | None] = ()
    event_ids: Sequence[str | None] = ()
    reported_visitors: Sequence[ReportedVisitor] = ()
    has_anonymous_ids: bool = True
    decoded_bytes: int = 0

    def item_website_ids(self) -> Sequence[str | None]:
        """Return the website of each item, None for none."""
        return self.website_ids or [None] * self.count


class BodyToDecode(Struct, frozen=True):
    """A body with all that decoding it needs; `decompress` is None where it is plain JSON.

    `wants_record` is False where the request is going to be refused whatever the body says, and
    only the body's own errors are of interest.
    """

    endpoint: IngestPath
    body: bytes
    received_ms: int
    has_api_key: bool
    limits: BodyLimits
    decompress: Decompress | None = None
    wants_record: bool = True


def decode_draft(to_decode: BodyToDecode) -> RecordDraft:
    """Decode a body. Raises `InvalidBody` or `PayloadTooLarge`."""
    body = to_decode.body
    if to_decode.decompress is not None:
        body = to_decode.decompress(body, to_decode.limits.max_decoded_bytes)
    decoded = decode_request(
        to_decode.endpoint,
        body,
        received_ms=to_decode.received_ms,
        has_api_key=to_decode.has_api_key,
        limits=to_decode.limits,
    )
    if not to_decode.wants_record:
        return RecordDraft(to_decode.received_ms, len(decoded.items), b"")
    draft = make_draft(to_decode.endpoint, decoded, has_api_key=to_decode.has_api_key)
    return msgspec.structs.replace(draft, decoded_bytes=len(body))


def make_draft(endpoint: IngestPath, decoded: DecodedRequest, *, has_api_key: bool) -> RecordDraft:
    """Return the draft of a decoded request."""
    items = decoded.items
    if not items:
        return RecordDraft(decoded.received_ms, 0, b"")
    batch = AuthorizedBatch(
        received_ms=decoded.received_ms,
        items=items,
        timestamps_ms=decoded.timestamps_ms,
        websites=[WebsiteId("")] * len(items),
        enrichment=NO_ENRICHMENT,
        has_api_key=has_api_key,
    )
    reports = has_api_key and any(item.ip is not None or item.user_agent for item in items)
    return RecordDraft(
        decoded.received_ms,
        len(items),
        encode_record(convert_batch(endpoint, batch)),
        website_ids=decoded.website_ids() if any(item.website_id for item in items) else (),
        event_ids=item_event_ids(endpoint, decoded),
        reported_visitors=[ReportedVisitor(item.ip, item.user_agent) for item in items]
        if reports
        else (),
        has_anonymous_ids=decoded.has_anonymous_ids(),
    )


def item_event_ids(endpoint: IngestPath, decoded: DecodedRequest) -> tuple[str | None, ...]:
    """Return what the reply of /batch says of each item: its event id, None without one."""
    if endpoint is not IngestPath.BATCH:
        return ()
    return tuple([item.event_id or None for item in decoded.items])


def finish_record(
    draft: RecordDraft,
    *,
    websites: Sequence[WebsiteId],
    enrichment: Enrichment,
    idempotency_digest: bytes,
    find_expired: FindExpired,
) -> bytes:
    """Return the record of an authorized request."""
    record = decode_record(draft.payload)
    set_field = msgspec.structs.force_setattr  # nobody else has seen the decoded record
    items: Sequence[Event | Vital | ErrorEvent] = record.items
    for item, website in zip(items, websites, strict=True):
        set_field(item, "website_id", website)
        if not item.anonymous_id:
            set_field(item, "anonymous_id", enrichment.anonymous_id)
    for item, visitor in zip(items, enrichment.visitors or (), strict=False):
        set_field(item, "visitor", visitor)
    set_field(record, "visitor", enrichment.visitor)
    set_field(record, "idempotency_digest", idempotency_digest)
    set_field(record, "expired", find_expired([item.time_ms for item in items]))
    return encode_record(record)
