"""The digests that a batch is going to add, with their expiries."""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import NamedTuple


class ExpiringDigests(NamedTuple):
    """Digests with the same expiry in epoch milliseconds."""

    digests: Sequence[bytes]
    expiry_ms: int


class NewDigests:
    """Collects digests with their expiries in epoch milliseconds.

    Nearly all are new, so nothing is asked before they are added: a dictionary that does not grow
    by as many shows that some were in it already, and is then made again without the last ones.
    """

    def __init__(self) -> None:
        self.expiries: dict[bytes, int] = {}
        self._added: list[ExpiringDigests] = []
        self._has_repeats = False

    def add_if_all_are_new(self, parts: Sequence[ExpiringDigests]) -> bool:
        """Add all digests if they differ from each other and from those before.

        Otherwise nothing is added. Returns whether they were. A batch that had a repeat may have
        more of them: from then on this returns False at once.
        """
        if self._has_repeats:
            return False
        size = len(self.expiries) + sum(len(part.digests) for part in parts)
        self._add(parts)
        if len(self.expiries) < size:
            self._has_repeats = True
            self.expiries.clear()
            self._add(self._added)
            self._added.clear()
            return False
        self._added += parts
        return True

    def add(self, expiries: Mapping[bytes, int]) -> None:
        """Add digests; a later expiry of one replaces the earlier one."""
        self.expiries.update(expiries)
        if not self._has_repeats:
            self._added += [ExpiringDigests((digest,), ms) for digest, ms in expiries.items()]

    def _add(self, parts: Sequence[ExpiringDigests]) -> None:
        for digests, expiry_ms in parts:
            # It takes two thirds of the time of a dictionary for each part.
            self.expiries.update(zip(digests, repeat(expiry_ms)))
