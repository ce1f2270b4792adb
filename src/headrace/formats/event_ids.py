"""The digests of event ids. Loader, ledger and claims deduplicate items by them.

A website has two namespaces of event ids for each kind of items: one for requests with an API key,
and one for requests without. The website id is public, so anyone could otherwise send an event
id first and suppress the event of a server.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

from headrace.formats.packed_column import PACKED_VALUE_BYTES, PackedColumn
from headrace.model.log_records import ErrorEvent, Event, EventKind, Vital

EVENT_ID_DIGEST_BYTES = 16
_MAX_CACHED_NAMESPACES = 4096
_NO_DIGEST = bytes(EVENT_ID_DIGEST_BYTES)

_FLIPPED = tuple(bytes([byte ^ 1]) for byte in range(256))


def keyed_digests(
    event_kind: EventKind, items: Sequence[Event | Vital | ErrorEvent]
) -> list[bytes]:
    """Return the digests of the items' event ids, sent with an API key; empty without an id."""
    digests: list[bytes] = []
    website_id, new_hash = "", _namespace(event_kind, "").copy
    for item in items:
        if not item.event_id:
            digests.append(b"")
            continue
        if item.website_id != website_id:
            website_id = item.website_id
            new_hash = _namespace(event_kind, website_id).copy
        state = new_hash()
        state.update(item.event_id.encode())
        digests.append(state.digest())
    return digests


def keyed_digest(event_kind: EventKind, website_id: str, event_id: str) -> bytes:
    """Return the digest of an event id that was sent with an API key."""
    state = _namespace(event_kind, website_id).copy()
    state.update(event_id.encode())
    return state.digest()


@lru_cache(_MAX_CACHED_NAMESPACES)
def _namespace(event_kind: EventKind, website_id: str) -> blake2b:
    """Return the hash of all that comes before an event id; copies of it take two thirds as long.

    No text of a client contains the separator.
    """
    namespace = f"{event_kind.value}\0{website_id}\0"
    return blake2b(namespace.encode(), digest_size=EVENT_ID_DIGEST_BYTES)


def keyless_digest(digest: bytes) -> bytes:
    """Return the digest of the same event id without an API key: the last bit is flipped.

    It follows from the other digest, because ledgers once had one namespace and are migrated: they
    contain digests and not the event ids.
    """
    return digest[:-1] + _FLIPPED[digest[-1]]


def are_event_ids(joined: bytes, count: int) -> bool:
    """Return whether so many digests, joined, are all of event ids: none is shorter than those.

    Asking each of them takes three times as long.
    """
    return len(joined) == EVENT_ID_DIGEST_BYTES * count


def event_key(digest: bytes) -> bytes:
    """Return what the row of an event id is found by: eight bytes of either of its digests.

    Of a billion other ids, one has the same key with a probability of 5 · 10⁻¹¹.
    """
    return digest[:PACKED_VALUE_BYTES]


def event_keys(digests: Sequence[bytes]) -> PackedColumn:
    """Return the keys of items by their digests: zeros for an empty one, an item without an id."""
    joined = b"".join(digests)
    if len(joined) < EVENT_ID_DIGEST_BYTES * len(digests):
        joined = b"".join([digest or _NO_DIGEST for digest in digests])
    return PackedColumn(memoryview(joined).cast("Q")[::2].tobytes())


def known_among(known: Mapping[bytes, int], digests: Iterable[bytes]) -> Mapping[bytes, int]:
    """Return those of the digests that are in a mapping, with their expiries."""
    # As for most events; it takes a fifth of the time of asking for each.
    if not known or known.keys().isdisjoint(digests):
        return {}
    return {digest: known[digest] for digest in digests if digest in known}
