"""Entries of event ids in the ledger's database: a digest and its expiry, in blocks by a prefix."""

from array import array
from collections.abc import Generator, Iterable, Mapping
from operator import add
from typing import Final

from headrace.formats.event_ids import EVENT_ID_DIGEST_BYTES

_EXPIRY_BYTES = 8
ENTRY_BYTES: Final = EVENT_ID_DIGEST_BYTES + _EXPIRY_BYTES
PREFIX_BITS: Final = 10
BLOCKS_PER_RUN: Final = 1 << PREFIX_BITS
_LOW_SIX_BITS_FIRST = bytes(byte << 2 & 0xFF for byte in range(256))
_HIGH_TWO_BITS_LAST = bytes(byte >> 6 for byte in range(256))


def encode_blocks(expiries: Mapping[bytes, int]) -> dict[int, bytes]:
    """Return the entries of digests in blocks, by their prefixes and in the order of those."""
    blocks: list[list[bytes]] = [[] for _ in range(BLOCKS_PER_RUN)]
    for prefix, entry in zip(
        prefixes_of(b"".join(expiries)), encode_entries(expiries), strict=True
    ):
        blocks[prefix].append(entry)
    return {prefix: b"".join(block) for prefix, block in enumerate(blocks) if block}


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


def prefixes_of(digests: bytes) -> "array[int]":
    """Return ten bits of each of the joined digests: the numbers of their blocks in a run.

    They are the leading bits of positions in the filter, so what is added block by block is added
    to neighbouring positions: that takes half the time of adding it in another order.
    """
    leading, next_bits = digests[2::EVENT_ID_DIGEST_BYTES], digests[1::EVENT_ID_DIGEST_BYTES]
    low = int.from_bytes(leading.translate(_LOW_SIX_BITS_FIRST), "little")
    low |= int.from_bytes(next_bits.translate(_HIGH_TWO_BITS_LAST), "little")
    pairs = bytearray(2 * len(leading))
    pairs[0::2] = low.to_bytes(len(leading), "little")
    pairs[1::2] = leading.translate(_HIGH_TWO_BITS_LAST)
    return array("H", bytes(pairs))
