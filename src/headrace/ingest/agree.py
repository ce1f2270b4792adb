"""Sifts a batch where other machines load into the same store and may have items of it."""

from collections.abc import Callable, Collection, Mapping, Sequence

from headrace.ingest.gather import GatheredRecord
from headrace.ingest.sift import EVENT_ID_LIFE_MS, REPEAT_KEY_LIFE_MS, Sifting, sift
from headrace.ports.claims import Claim, Claims

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
