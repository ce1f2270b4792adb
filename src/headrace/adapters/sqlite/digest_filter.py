"""A filter in memory that says where a stored digest may be, and of most new ones that it is not.

Eight Bloom filters, the planes, share one table: each has one bit of every byte. A digest has four
positions in the table, and the bits that are set at all four are the planes that may contain it.
So one look-up serves all planes, and a plane is emptied by clearing its bit everywhere. The four
positions are in one line of the processor's cache, because waiting for memory takes longest; for
the same reason the bytes of many digests are read at once.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LINE_SLOTS: Final = 64
_WORD: Final = np.uint32
_PROBE_BITS: Final = _WORD(0x3F3F3F3F)
"""Of the second word of a digest: each byte gives a position within the line of the first one."""

_ADDED_AT_ONCE: Final = 4_096
"""Entries whose lines, 64 bytes each, stay in the processor's cache from reading to writing."""


class DigestFilter:
    """Planes of digests, which are uniform hashes: their first eight bytes are the positions."""

    def __init__(self, slots: int) -> None:
        """`slots` is a power of two up to 2³²; the pages come into use as digests are added."""
        self._table: NDArray[np.uint8] = np.zeros(slots, np.uint8)
        self._line_bits = _WORD((slots - 1) & ~(_LINE_SLOTS - 1))

    def add(self, entries: bytes, entry_bytes: int, plane: int) -> None:
        """Add digests to a plane; each begins an entry of `entry_bytes`, a multiple of 4."""
        bit = np.uint8(1 << plane)
        step = _ADDED_AT_ONCE * entry_bytes
        for start in range(0, len(entries), step):
            positions = self._positions(entries[start : start + step], entry_bytes)
            # Where digests share a position, each writes the same value there.
            self._table.put(positions, self._table.take(positions) | bit)

    def candidates(self, digests: Sequence[bytes], digest_bytes: int) -> list[tuple[bytes, int]]:
        """Return the digests that may be in a plane, each with the bits of these planes."""
        if not digests:
            return []
        values = self._table.take(self._positions(b"".join(digests), digest_bytes))
        planes = np.bitwise_and.reduce(values)
        (found,) = planes.nonzero()
        return [
            (digests[index], bits)
            for index, bits in zip(found.tolist(), planes[found].tolist(), strict=True)
        ]

    def clear(self, plane: int) -> None:
        """Remove all digests of a plane."""
        self._table &= np.uint8(~(1 << plane) & 0xFF)

    def _positions(self, entries: bytes, entry_bytes: int) -> NDArray[np.intp]:
        """Return a row of all entries' first positions, one of their second ones, and so on."""
        words = np.frombuffer(entries, _WORD).reshape(-1, entry_bytes // 4)
        probes = (words[:, 1] & _PROBE_BITS).view(np.uint8).reshape(-1, 4).T
        positions = np.empty(probes.shape, np.intp)
        np.bitwise_or(words[:, 0] & self._line_bits, probes, out=positions)
        return positions
