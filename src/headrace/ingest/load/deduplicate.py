"""Finds the items that repeat others: same website and event id, or same Idempotency-Key."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b

from msgspec import Struct

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.formats.row_ids import STREAM_OF
from headrace.ingest.load.batch_reader import GatheredRecord
from headrace.model.log_records import ErrorEvent, Event, LogRecord, Stream, Vital
from headrace.ports.dedup_claims import Claim, Claims

EVENT_ID_LIFE_MS = 7 * MILLISECONDS_PER_DAY
REPEAT_KEY_LIFE_MS = MILLISECONDS_PER_DAY
_DIGEST_BYTES = 16


class Sifting(Struct, frozen=True):
    """Which items of each record are stored, and what must be remembered of them.

    `kept` has the indexes of the items for each record; `seen` has digests with the moment they
    expire, in epoch milliseconds; `repeated` counts what was left out.
    """

    kept: list[Sequence[int]]
    seen: dict[bytes, int]
    repeated: Counter[Stream]


def sift(
    records: Sequence[GatheredRecord],
    find_seen: Callable[[Sequence[bytes]], Mapping[bytes, int]],
) -> Sifting:
    """Leave out what was seen before or stands earlier among the records; the first stays."""
    digests = [_digests(record.content) for record in records]
    asked = [digest for of_items in digests for digest in of_items if digest]
    asked += [r.content.repeat_key for r in records if r.content and r.content.repeat_key]
    sifting = Sifting(kept=[], seen={}, repeated=Counter())
    if not asked:
        sifting.kept.extend(_all_items(record.content) for record in records)
        return sifting
    expiries = dict(find_seen(asked))
    for record, of_items in zip(records, digests, strict=True):
        kept = _sift_record(record, of_items, expiries, sifting.seen)
        sifting.kept.append(kept)
        if record.content is not None and len(kept) < len(record.content.items):
            stream = STREAM_OF[type(record.content)]
            sifting.repeated[stream] += len(record.content.items) - len(kept)
    return sifting


def _all_items(content: LogRecord | None) -> Sequence[int]:
    return () if content is None else range(len(content.items))


def _digests(content: LogRecord | None) -> Sequence[bytes]:
    """Return a digest for each item, empty for those without an event id; nothing if all are.

    No text of a caller holds the separator.
    """
    if content is None or not _has_event_id(content.items):
        return ()
    stream = STREAM_OF[type(content)].value
    return [
        blake2b(
            f"{stream}\0{item.website_id}\0{item.event_id}".encode(), digest_size=_DIGEST_BYTES
        ).digest()
        if item.event_id
        else b""
        for item in content.items
    ]


def _has_event_id(items: Sequence[Event | Vital | ErrorEvent]) -> bool:
    for item in items:  # noqa: SIM110 - any() takes three times as long for one item
        if item.event_id:
            return True
    return False


def _sift_record(
    record: GatheredRecord,
    digests: Sequence[bytes],
    expiries: dict[bytes, int],
    seen: dict[bytes, int],
) -> Sequence[int]:
    content = record.content
    if content is None:
        return ()
    received_ms = content.received_ms

    def is_first(digest: bytes, life_ms: int) -> bool:
        if expiries.get(digest, 0) > received_ms:
            return False
        expiries[digest] = seen[digest] = received_ms + life_ms
        return True

    if content.repeat_key and not is_first(content.repeat_key, REPEAT_KEY_LIFE_MS):
        return ()
    if not digests:
        return range(len(content.items))
    return [
        index
        for index, digest in enumerate(digests)
        if not digest or is_first(digest, EVENT_ID_LIFE_MS)
    ]


_FindSeen = Callable[[Sequence[bytes]], Mapping[bytes, int]]
_FOR_EVER = 1 << 63


def sift_with_others(
    records: Sequence[GatheredRecord], find_seen: _FindSeen, *, claims: Claims, batch: int
) -> Sifting:
    """Leave out what was seen before, here or on another machine.

    Raises `SharedUnavailable`. Whole requests are claimed before their items: an item may only be
    claimed by a machine that will store it.
    """
    keys = {record.content.repeat_key for record in records if record.content}
    sifting = sift(records, find_seen)
    others: set[bytes] = set()
    for are_requests in (True, False):
        life_ms = REPEAT_KEY_LIFE_MS if are_requests else EVENT_ID_LIFE_MS
        wanted = {
            digest: Claim(received_ms=expires_ms - life_ms, expires_ms=expires_ms)
            for digest, expires_ms in sifting.seen.items()
            if (digest in keys) == are_requests
        }
        held = claims.claim(batch, wanted) if wanted else ()
        if held:
            others.update(held)
            sifting = sift(records, _also(find_seen, others))
    return sifting


def _also(find_seen: _FindSeen, others: Collection[bytes]) -> _FindSeen:
    return lambda asked: {**find_seen(asked), **dict.fromkeys(others, _FOR_EVER)}
