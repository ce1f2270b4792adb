"""The digests of a batch, which the next batch asks for by the thousand."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from headrace.formats.event_ids import EVENT_ID_DIGEST_BYTES, are_event_ids, known_among

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_MAPPED_DIGESTS: Final = 4_096
"""A dictionary of fewer digests stays in the processor's cache, and needs no numpy."""

_MAP_BITS: Final = 21
"""Of a digest's first four bytes: a twentieth of all others has those of 100,000 digests."""


class DigestSet:
    """Digests with their expiries; nearly all look-ups are of others.

    A map of the first bits of all digests rules out most others in one step for a whole chunk,
    where a dictionary waits for memory for each. What it cannot rule out is looked up.
    """

    def __init__(self, expiries: Mapping[bytes, int]) -> None:
        self._expiries = expiries
        joined = b"".join(expiries)
        is_mapped = len(expiries) >= MIN_MAPPED_DIGESTS and are_event_ids(joined, len(expiries))
        self._map = _map_of(joined) if is_mapped else None

    def known_among(self, digests: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return those of the digests that are in the set, with their expiries."""
        if self._map is None:
            return known_among(self._expiries, digests)
        joined = b"".join(digests)
        if not are_event_ids(joined, len(digests)):
            return known_among(self._expiries, digests)
        (found,) = self._map.take(_first_bits(joined)).nonzero()
        return known_among(self._expiries, [digests[index] for index in found.tolist()])


def _map_of(joined: bytes) -> "NDArray[np.bool_]":
    import numpy as np  # noqa: PLC0415 - 17 MiB, for large batches alone

    bits = np.zeros(1 << _MAP_BITS, np.bool_)
    bits[_first_bits(joined)] = True
    return bits


def _first_bits(joined: bytes) -> "NDArray[np.uint32]":
    import numpy as np  # noqa: PLC0415 - as above

    words = np.frombuffer(joined, np.uint32)[:: EVENT_ID_DIGEST_BYTES // 4]
    return words >> np.uint32(32 - _MAP_BITS)
