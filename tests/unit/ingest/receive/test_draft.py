"""A draft is decoded once and finished later: the record is the one that is made at once."""

from collections.abc import Sequence

import msgspec
import pytest

from headrace.ingest.receive.convert import AuthorizedBatch, convert_batch
from headrace.ingest.receive.decoding.decode import IngestPath
from headrace.ingest.receive.decoding.decode_request import BodyLimits, decode_request
from headrace.ingest.receive.draft import BodyToDecode, decode_draft, finish_record
from headrace.ingest.receive.enrich import Enrichment
from headrace.model.log_records import Visitor, decode_record, encode_record
from headrace.model.tenancy import WebsiteId
from testing.tenants import NOW_MS

LIMITS = BodyLimits(max_items=100)
DIGEST = b"d" * 32
EVENTS = (
    b'[{"name":"a","properties":{"b":[{"c":1.50}],"b":"\\u00e9"},"anonymousId":"anon_1",'
    b'"timestamp":1700000000000,"eventId":"1"},{"name":"b","websiteId":"web_b","title":"Home",'
    b'"value":3},{"name":"c","ip":"1.2.3.4","userAgent":"x"}]'
)
VITALS = b'[{"timestamp":1700000000000,"path":"/","metricName":"LCP","metricValue":1}]'
ERRORS = b'[{"timestamp":1700000000000,"path":"/","message":"no","lineno":3}]'
BODIES = {
    IngestPath.TRACK: EVENTS,
    IngestPath.BATCH: EVENTS,
    IngestPath.PAGE: b'{"name":"a","title":{},"value":2}',
    IngestPath.VITALS: VITALS,
    IngestPath.ERRORS: ERRORS,
}


def expired_of(timestamps_ms: Sequence[int]) -> tuple[int, ...]:
    return tuple(number for number, time_ms in enumerate(timestamps_ms) if time_ms < NOW_MS)


@pytest.mark.parametrize("has_api_key", [False, True], ids=["without a key", "with a key"])
@pytest.mark.parametrize(("endpoint", "body"), BODIES.items(), ids=lambda value: str(value)[:16])
def test_finished_draft_is_the_record_of_the_same_request(
    endpoint: IngestPath, body: bytes, has_api_key: bool
) -> None:
    decoded = decode_request(
        endpoint, body, received_ms=NOW_MS, has_api_key=has_api_key, limits=LIMITS
    )
    count = len(decoded.items)
    websites = [WebsiteId(f"web_{number}") for number in range(count)]
    visitors = [None, Visitor("DE"), None][:count]
    enrichment = Enrichment(Visitor("FR"), visitors if has_api_key else None, "anon_made")
    at_once = AuthorizedBatch(
        NOW_MS,
        decoded.items,
        decoded.timestamps_ms,
        websites,
        enrichment,
        has_api_key,
        DIGEST,
        expired=expired_of(decoded.timestamps_ms),
    )

    draft = decode_draft(BodyToDecode(endpoint, body, NOW_MS, has_api_key, LIMITS))
    finished = finish_record(
        draft,
        websites=websites,
        enrichment=enrichment,
        idempotency_digest=DIGEST,
        find_expired=expired_of,
    )

    expected = decode_record(encode_record(convert_batch(endpoint, at_once)))
    assert decode_record(finished) == expected
    assert draft.item_website_ids() == decoded.website_ids()
    assert draft.has_anonymous_ids == decoded.has_anonymous_ids()


def test_draft_of_a_call_with_a_key_knows_the_reported_visitors() -> None:
    draft = decode_draft(BodyToDecode(IngestPath.TRACK, EVENTS, NOW_MS, True, LIMITS))

    assert [msgspec.structs.astuple(visitor) for visitor in draft.reported_visitors] == [
        (None, None),
        (None, None),
        ("1.2.3.4", "x"),
    ]


def test_draft_of_an_empty_batch_has_no_record() -> None:
    draft = decode_draft(BodyToDecode(IngestPath.TRACK, b"[]", NOW_MS, False, LIMITS))

    assert (draft.count, draft.payload) == (0, b"")
