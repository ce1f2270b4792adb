"""Drops duplicate items: same website and event id, or same Idempotency-Key."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.formats.event_ids import keyed_digests, keyless_digest, known_among
from headrace.formats.row_ids import EVENT_KIND_OF
from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.new_digests import ExpiringDigests, NewDigests
from headrace.model.log_records import ErrorEvent, Event, EventKind, LogRecord, Vital
from headrace.ports.dedup_claims import Claim, DedupClaims

EVENT_ID_TTL_MS = 7 * MILLISECONDS_PER_DAY
IDEMPOTENCY_KEY_TTL_MS = MILLISECONDS_PER_DAY


REPEATED: Final = "repeated"
EXPIRED: Final = "expired"


class DroppedItems(NamedTuple):
    """Why items of a kind are not stored: their outcome in the metrics."""

    event_kind: EventKind
    outcome: str


class DedupResult(Struct, frozen=True):
    """The items of each record to store, and the digests to remember.

    `kept` has the indexes of the items to store for each record, `digests` those of the event ids
    of all its items, none where no item has one; `new_digests` has digests with their expiries in
    epoch milliseconds, those from before the records included; `dropped` counts the items that are
    not stored.
    """

    kept: list[Sequence[int]]
    digests: Sequence[Sequence[bytes]]
    new_digests: Mapping[bytes, int]
    dropped: Counter[DroppedItems]


def deduplicate(
    records: Sequence[ReadRecord],
    find_known: Callable[[Sequence[bytes]], Mapping[bytes, int]],
    new_digests: NewDigests | None = None,
) -> DedupResult:
    """Drop items with known digests, and all but the first of repeated items in the records.

    `new_digests` are those of the batch before these records, which are known too; the records'
    are added to them. Expired items are dropped too; their digests are remembered. Items from the
    quarantine are no repeats, and their event ids are known from when they were received.
    """
    collected = NewDigests() if new_digests is None else new_digests
    digests = [_digests(record.content) for record in records]
    present = [
        _present(record.content, item_digests)
        for record, item_digests in zip(records, digests, strict=True)
    ]
    lookups: list[bytes] = []
    for record, record_digests in zip(records, present, strict=True):
        lookups += record_digests
        if record.content is not None and record.content.has_api_key is None:
            lookups += map(keyless_digest, record_digests)
    lookups += [
        r.content.idempotency_digest for r in records if r.content and r.content.idempotency_digest
    ]
    dedup = DedupResult([], digests, collected.expiries, dropped=Counter())
    known: Mapping[bytes, int] = find_known(lookups) if lookups else {}
    if not known and _add_if_all_are_new(records, present, collected):
        dedup.kept.extend(
            _unexpired(record.content, _all_indexes(record.content), dedup.dropped)
            for record in records
        )
        return dedup
    expiries = {**known, **known_among(collected.expiries, lookups)}
    added: dict[bytes, int] = {}
    for record, item_digests in zip(records, digests, strict=True):
        kept = _deduplicate_record(record, item_digests, expiries, added)
        if record.content is not None and len(kept) < len(record.content.items):
            repeated = DroppedItems(EVENT_KIND_OF[type(record.content)], REPEATED)
            dedup.dropped[repeated] += len(record.content.items) - len(kept)
        dedup.kept.append(_unexpired(record.content, kept, dedup.dropped))
    collected.add(added)
    return dedup


def _unexpired(
    content: LogRecord | None, indexes: Sequence[int], dropped: Counter[DroppedItems]
) -> Sequence[int]:
    """Return the indexes without those of items that were too old when they were received."""
    if content is None or not content.expired:
        return indexes
    expired = frozenset(content.expired)
    kept = [index for index in indexes if index not in expired]
    dropped[DroppedItems(EVENT_KIND_OF[type(content)], EXPIRED)] += len(indexes) - len(kept)
    return kept


def _all_indexes(content: LogRecord | None) -> Sequence[int]:
    return () if content is None else _unerased(content, range(len(content.items)))


def _unerased(content: LogRecord, indexes: Sequence[int]) -> Sequence[int]:
    """Return the indexes without those of items that were erased from the log."""
    if content.erased is None:
        return indexes
    return [index for index in indexes if index not in content.erased.indexes]


def _digests(content: LogRecord | None) -> Sequence[bytes]:
    """Return a digest for each item, empty without an event id; nothing if all are empty."""
    if content is None or not _has_event_id(content.items):
        return ()
    event_kind = EVENT_KIND_OF[type(content)]
    digests = keyed_digests(event_kind, content.items)
    if content.has_api_key is False:
        return [digest and keyless_digest(digest) for digest in digests]
    return digests


def _present(content: LogRecord | None, digests: Sequence[bytes]) -> Sequence[bytes]:
    """Return the digests by which items of a record may be repeats."""
    if not digests or content is None or content.is_requeued:
        return ()
    return digests if all(digests) else [digest for digest in digests if digest]


def _has_event_id(items: Sequence[Event | Vital | ErrorEvent]) -> bool:
    for item in items:  # noqa: SIM110 - any() takes three times as long for one item
        if item.event_id:
            return True
    return False


def _add_if_all_are_new(
    records: Sequence[ReadRecord], digests: Sequence[Sequence[bytes]], new_digests: NewDigests
) -> bool:
    """Add the digests of records of which none is known, unless one of them is repeated.

    Most chunks are like that, and so take one step for each of their digests. Returns whether they
    were added.
    """
    parts: list[ExpiringDigests] = []
    for record, record_digests in zip(records, digests, strict=True):
        content = record.content
        if content is None:
            continue
        if content.idempotency_digest:
            expiry_ms = content.received_ms + IDEMPOTENCY_KEY_TTL_MS
            parts.append(ExpiringDigests((content.idempotency_digest,), expiry_ms))
        if not record_digests:
            continue
        if content.has_api_key is None:  # the namespace is unknown: two digests for each id
            return False
        parts.append(ExpiringDigests(record_digests, content.received_ms + EVENT_ID_TTL_MS))
    return new_digests.add_if_all_are_new(parts)


def _deduplicate_record(
    record: ReadRecord,
    digests: Sequence[bytes],
    expiries: dict[bytes, int],
    new_digests: dict[bytes, int],
) -> Sequence[int]:
    content = record.content
    if content is None:
        return ()
    received_ms = content.received_ms

    def add_if_new(digest: bytes, ttl_ms: int) -> bool:
        if expiries.get(digest, 0) > received_ms:
            return False
        expiries[digest] = new_digests[digest] = received_ms + ttl_ms
        return True

    if content.idempotency_digest and not add_if_new(
        content.idempotency_digest, IDEMPOTENCY_KEY_TTL_MS
    ):
        return ()
    if not digests or content.is_requeued:
        return _all_indexes(content)
    kept = [
        index
        for index, digest in enumerate(digests)
        if not digest or add_if_new(digest, EVENT_ID_TTL_MS)
    ]
    if content.has_api_key is None:  # the namespace is unknown: the ids are known in both
        for digest in filter(None, (digests[index] for index in kept)):
            add_if_new(keyless_digest(digest), EVENT_ID_TTL_MS)
    return _unerased(content, kept)


_FindKnown = Callable[[Sequence[bytes]], Mapping[bytes, int]]
_NEVER_EXPIRES = 1 << 63


def deduplicate_across_machines(
    records: Sequence[ReadRecord], find_known: _FindKnown, *, claims: DedupClaims, batch: int
) -> DedupResult:
    """Drop items that this machine or another one has already.

    Raises `SharedStateUnavailable`. Whole requests are claimed before their items, because only a
    machine that will store an item may claim it.
    """
    keys = {record.content.idempotency_digest for record in records if record.content}
    dedup = deduplicate(records, find_known)
    foreign: set[bytes] = set()
    for are_requests in (True, False):
        ttl_ms = IDEMPOTENCY_KEY_TTL_MS if are_requests else EVENT_ID_TTL_MS
        wanted = {
            digest: Claim(received_ms=expires_ms - ttl_ms, expires_ms=expires_ms)
            for digest, expires_ms in dedup.new_digests.items()
            if (digest in keys) == are_requests
        }
        claimed_elsewhere = claims.claim(batch, wanted) if wanted else ()
        if claimed_elsewhere:
            foreign.update(claimed_elsewhere)
            dedup = deduplicate(records, _including(find_known, foreign))
    return dedup


def _including(find_known: _FindKnown, foreign: Collection[bytes]) -> _FindKnown:
    return lambda digests: {**find_known(digests), **dict.fromkeys(foreign, _NEVER_EXPIRES)}
