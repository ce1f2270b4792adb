"""The digests of event ids. Loader, ledger and claims deduplicate items by them.

A website has two namespaces of event ids for each kind of items: one for requests with an API key,
and one for requests without. The website id is public, so whoever knows it could otherwise send an
event id first and so suppress the event of a server.
"""

from hashlib import blake2b

from headrace.model.log_records import EventKind

EVENT_ID_DIGEST_BYTES = 16

_FLIPPED = tuple(bytes([byte ^ 1]) for byte in range(256))


def keyed_digest(event_kind: EventKind, website_id: str, event_id: str) -> bytes:
    """Return the digest of an event id that was sent with an API key.

    No text of a client contains the separator.
    """
    identity = f"{event_kind.value}\0{website_id}\0{event_id}"
    return blake2b(identity.encode(), digest_size=EVENT_ID_DIGEST_BYTES).digest()


def keyless_digest(digest: bytes) -> bytes:
    """Return the digest of the same event id without an API key: the last bit is flipped.

    It follows from the other digest, because ledgers once had one namespace and are migrated: they
    contain digests and not the event ids.
    """
    return digest[:-1] + _FLIPPED[digest[-1]]
