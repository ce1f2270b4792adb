"""Entries of event ids in the ledger's database: a digest and its expiry."""

from collections.abc import Generator, Iterable, Mapping
from operator import add
from typing import Final

from headrace.formats.event_ids import EVENT_ID_DIGEST_BYTES

_EXPIRY_BYTES = 8
ENTRY_BYTES: Final = EVENT_ID_DIGEST_BYTES + _EXPIRY_BYTES
PREFIX_BITS: Final = 10
BLOCKS_PER_RUN: Final = 1 << PREFIX_BITS


def encode_entries(expiries: Mapping[bytes, int]) -> Iterable[bytes]:
    """Return an entry for each digest."""
    encoded = {
        expiry_ms: expiry_ms.to_bytes(_EXPIRY_BYTES, "little")
        for expiry_ms in set(expiries.values())
    }
    return map(add, expiries, map(encoded.__getitem__, expiries.values()))


def decode_entries(entries: bytes) -> Generator[tuple[bytes, int]]:
    """Return each digest with its expiry."""
    for start in range(0, len(entries), ENTRY_BYTES):
        end = start + EVENT_ID_DIGEST_BYTES
        expiry_ms = int.from_bytes(entries[end : start + ENTRY_BYTES], "little")
        yield entries[start:end], expiry_ms


def latest_expiry(entries: bytes, digest: bytes) -> int:
    """Return the latest expiry of a digest in entries, or 0."""
    latest_ms = 0
    start = entries.find(digest)
    while start >= 0:
        if start % ENTRY_BYTES == 0:
            end = start + EVENT_ID_DIGEST_BYTES
            expiry_ms = int.from_bytes(entries[end : start + ENTRY_BYTES], "little")
            latest_ms = max(latest_ms, expiry_ms)
        start = entries.find(digest, start + 1)
    return latest_ms


def prefix_of(digest: bytes) -> int:
    """Return ten bits of a digest: the number of its block in a run.

    They are the leading bits of positions in the filter, so what is added block by block is added
    to neighbouring positions: that takes half the time of adding it in another order.
    """
    return digest[2] << 2 | digest[1] >> 6
