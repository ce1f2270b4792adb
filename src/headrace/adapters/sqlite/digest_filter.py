"""A filter in memory that says where a stored digest may be, and of most new ones that it is not.

Eight Bloom filters, the planes, share one table: each has one bit of every byte. A digest has four
positions in the table, and the bits that are set at all four are the planes that may contain it.
So one look-up serves all planes, and a plane is emptied by clearing its bit everywhere. The four
positions are in one line of the processor's cache, because waiting for memory takes longest; for
the same reason the bytes of many digests are read at once.
"""

from array import array
from collections.abc import Sequence

from headrace.formats.gathered_bytes import GatheredBytes

PLANES = 8
MIN_SLOTS = 1 << 24
"""16 MiB; its pages come into use as digests are added. Positions take 24 bits or more."""

SLOTS_PER_ID_OF_A_PLANE = 24
"""Of a full plane, which then finds about 0.2 % of the digests that are not in it."""

_WORD_BYTES = 4
_BITS_OF_LOWER_BYTES = 24
_PROBES = range(4, 8)
"""Bytes of a digest. Each gives one position within the line that the first four bytes give."""

_ADDED_AT_ONCE = 4_096
"""Entries whose lines, 64 bytes each, stay in the processor's cache from reading to writing."""

_LINE_BITS = bytes(byte & 0xC0 for byte in range(256))
_POSITION_BITS = bytes(byte & 0x3F for byte in range(256))


class DigestFilter:
    """Planes of digests, which are uniform hashes: their first eight bytes are the positions."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._set_table(bytearray(slots))
        mask = (slots - 1) >> _BITS_OF_LOWER_BYTES
        self._highest_bytes = bytes(byte & mask for byte in range(256))

    def add(self, entries: bytes, entry_bytes: int, plane: int) -> None:
        """Add digests to a plane; each begins an entry of `entry_bytes`, a multiple of 4."""
        table, with_plane = self._table, bytes(byte | 1 << plane for byte in range(256))
        step = _ADDED_AT_ONCE * entry_bytes
        for start in range(0, len(entries), step):
            positions = self._positions(entries[start : start + step], entry_bytes)
            # Where digests share a position, each writes the same value there.
            values = self._gathered.at(positions).translate(with_plane)
            for position, value in zip(positions, values, strict=True):
                table[position] = value

    def candidates(self, digests: Sequence[bytes], digest_bytes: int) -> list[tuple[bytes, int]]:
        """Return the digests that may be in a plane, each with the bits of these planes."""
        if not digests:
            return []
        count = len(digests)
        values = self._gathered.at(self._positions(b"".join(digests), digest_bytes))
        found = -1
        for start in range(0, len(values), count):
            found &= int.from_bytes(values[start : start + count], "little")
        if not found:  # as for most chunks of new ones
            return []
        planes = found.to_bytes(count, "little")
        return [one for one in zip(digests, planes, strict=True) if one[1]]

    def clear(self, plane: int) -> None:
        """Remove all digests of a plane."""
        kept = 255 - (1 << plane)
        self._set_table(self._table.translate(bytes(byte & kept for byte in range(256))))

    def _set_table(self, table: bytearray) -> None:
        self._table, self._gathered = table, GatheredBytes(table)

    def _positions(self, entries: bytes, entry_bytes: int) -> "array[int]":
        """Return the first positions of all entries' digests, then their second ones, and so on."""
        count = len(entries) // entry_bytes
        line = int.from_bytes(entries[0::entry_bytes].translate(_LINE_BITS), "little")
        words = bytearray(count * _WORD_BYTES)
        words[1::_WORD_BYTES] = entries[1::entry_bytes]
        words[2::_WORD_BYTES] = entries[2::entry_bytes]
        words[3::_WORD_BYTES] = entries[3::entry_bytes].translate(self._highest_bytes)
        positions = array("I")
        for probe in _PROBES:
            within = int.from_bytes(entries[probe::entry_bytes].translate(_POSITION_BITS), "little")
            words[0::_WORD_BYTES] = (line | within).to_bytes(count, "little")
            positions.frombytes(words)
        return positions


def planes_in(bits: int) -> list[int]:
    """Return the numbers of the planes whose bits are set."""
    return [plane for plane in range(PLANES) if bits >> plane & 1]
