"""Deduplication of any records, compared with one dictionary that is asked item by item."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from headrace.formats.event_ids import keyed_digests, keyless_digest
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.deduplicate import (
    EVENT_ID_TTL_MS,
    IDEMPOTENCY_KEY_TTL_MS,
    deduplicate,
)
from headrace.ingest.load.new_digests import NewDigests
from headrace.model.log_records import UNKNOWN_VISITOR, Event, EventKind, EventRecord
from headrace.ports.event_log import LOG_START, LoggedRecord

START_MS = 1_700_000_000_000

event_ids = st.sampled_from(["", "1", "2", "3", "4", "5"])
records = st.lists(
    st.builds(
        EventRecord,
        received_ms=st.sampled_from([START_MS, START_MS + 1, START_MS + EVENT_ID_TTL_MS]),
        visitor=st.just(UNKNOWN_VISITOR),
        items=st.lists(
            st.builds(
                Event,
                website_id=st.sampled_from(["web_a", "web_b"]),
                time_ms=st.just(0),
                name=st.just("a"),
                event_id=event_ids,
            ),
            max_size=4,
        ),
        idempotency_digest=st.sampled_from([b"", b"", b"k" * 32, b"l" * 32]),
        has_api_key=st.sampled_from([True, True, False, None]),
        is_requeued=st.sampled_from([False, False, True]),
    ),
    max_size=4,
)


def digest_of(website_id: str, event_id: str, has_api_key: bool) -> bytes:
    digests = keyed_digests(EventKind.EVENTS, [Event(website_id, 0, "a", event_id=event_id)])
    return digests[0] if has_api_key else keyless_digest(digests[0])


known = st.dictionaries(
    st.builds(
        digest_of,
        st.sampled_from(["web_a", "web_b"]),
        st.sampled_from(["1", "2"]),
        has_api_key=st.booleans(),
    ),
    st.sampled_from([START_MS, START_MS + 1, START_MS + 2]),
    max_size=2,
)


def one_by_one(
    contents: Sequence[EventRecord], known_before: Mapping[bytes, int]
) -> tuple[list[list[int]], dict[bytes, int]]:
    expiries, new = dict(known_before), dict[bytes, int]()
    kept: list[list[int]] = []

    def is_new(digest: bytes, now_ms: int, ttl_ms: int) -> bool:
        if expiries.get(digest, 0) > now_ms:
            return False
        expiries[digest] = new[digest] = now_ms + ttl_ms
        return True

    for content in contents:
        now_ms = content.received_ms
        key = content.idempotency_digest
        if key and not is_new(key, now_ms, IDEMPOTENCY_KEY_TTL_MS):
            kept.append([])
            continue
        if content.is_requeued:
            kept.append(list(range(len(content.items))))
            continue
        digests = keyed_digests(EventKind.EVENTS, content.items)
        if content.has_api_key is False:
            digests = [digest and keyless_digest(digest) for digest in digests]
        kept.append(
            [
                index
                for index, digest in enumerate(digests)
                if not digest or is_new(digest, now_ms, EVENT_ID_TTL_MS)
            ]
        )
        if content.has_api_key is None:
            for index in kept[-1]:
                if digests[index]:
                    is_new(keyless_digest(digests[index]), now_ms, EVENT_ID_TTL_MS)
    return kept, new


def read_of(contents: Sequence[EventRecord]) -> list[ReadRecord]:
    logged = LoggedRecord(start=LOG_START, end=LOG_START, payload=b"")
    return [ReadRecord("worker-0", logged, one.received_ms, one) for one in contents]


@given(records, known)
def test_all_at_once_keeps_what_one_by_one_keeps(
    contents: list[EventRecord], known_before: dict[bytes, int]
) -> None:
    dedup = deduplicate(
        read_of(contents),
        lambda digests: {d: known_before[d] for d in digests if d in known_before},
    )
    assert ([list(one) for one in dedup.kept], dedup.new_digests) == one_by_one(
        contents, known_before
    )


@given(st.lists(records, max_size=4), known)
def test_chunks_of_a_batch_keep_what_one_by_one_keeps(
    chunks: list[list[EventRecord]], known_before: dict[bytes, int]
) -> None:
    new_digests = NewDigests()
    kept: list[list[int]] = []
    for contents in chunks:
        dedup = deduplicate(
            read_of(contents),
            lambda digests: {d: known_before[d] for d in digests if d in known_before},
            new_digests,
        )
        kept += map(list, dedup.kept)
        assert dedup.new_digests is new_digests.expiries
    every = [content for contents in chunks for content in contents]
    expected = one_by_one(every, known_before)
    assert (kept, new_digests.expiries) == expected
