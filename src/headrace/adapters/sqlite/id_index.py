"""The runs of event ids in the planes of the filter, and the digests that are in no run yet."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from headrace.adapters.sqlite.id_runs import IdRun, ids_of
from headrace.base.clock import MILLISECONDS_PER_DAY

if TYPE_CHECKING:
    from headrace.adapters.sqlite.digest_filter import DigestFilter

PLANES: Final = 8
_SLOTS_PER_ID_OF_A_PLANE: Final = 32
"""Of a full plane, which then finds about 0.1 % of the digests that are not in it."""

MIN_SLOTS: Final = 1 << 24
"""Of a filter; 16 MiB, whose pages come into use as digests are added."""

_MAX_PLANE_MS: Final = MILLISECONDS_PER_DAY * 3 // 2
"""Eight planes then cover the nine days for which digests may be looked up."""

_MIN_SLOTS_PER_ID = 5
"""Of a new filter. With a quarter as many digests as slots it is full, and is replaced."""


class IdIndex:
    """What is in memory: digests that are in no run, the filter, and the runs of its planes."""

    def __init__(self, recent: dict[bytes, int], runs: Sequence[IdRun]) -> None:
        """Distribute runs, in the order of their expiry, to planes that leave one empty."""
        ids = ids_of(runs)
        slots = MIN_SLOTS
        while slots < ids * _MIN_SLOTS_PER_ID:
            slots *= 2
        self.recent = recent
        self._slots = slots
        self.planes: list[list[IdRun]] = [[] for _ in range(PLANES)]
        self.newest_plane = 0
        for run in runs:
            if ids_of(self.planes[self.newest_plane]) * (PLANES - 2) > ids:
                self.newest_plane += 1
            self.planes[self.newest_plane].append(run)

    @cached_property
    def filter(self) -> "DigestFilter":
        """The filter, made with the first run.

        numpy takes a tenth of a second and 17 MiB, of which most services need nothing at first.
        """
        from headrace.adapters.sqlite.digest_filter import DigestFilter  # noqa: PLC0415

        return DigestFilter(self._slots)

    def runs(self) -> list[IdRun]:
        """Return all runs in the order of their expiry."""
        return sorted((run for runs in self.planes for run in runs), key=_by_expiry)

    def runs_of(self, planes: int) -> list[IdRun]:
        """Return the runs of planes, which are bits."""
        return [run for plane in planes_in(planes) for run in self.planes[plane]]

    def has_room(self, run: IdRun) -> bool:
        """Return whether a new run fits into the newest plane."""
        runs = [*self.planes[self.newest_plane], run]
        span_ms = max(one.last_expiry_ms for one in runs) - min(one.first_expiry_ms for one in runs)
        is_small = ids_of(runs) * _SLOTS_PER_ID_OF_A_PLANE <= self._slots
        return len(runs) == 1 or (is_small and span_ms <= _MAX_PLANE_MS)

    def begin_plane(self) -> bool:
        """Make an empty plane the newest one; return whether there is one."""
        for plane, runs in enumerate(self.planes):
            if not runs:
                self.newest_plane = plane
                return True
        return False

    def remove(self, run: IdRun) -> None:
        """Remove a run; the filter forgets the digests of a plane that has no other."""
        for plane, runs in enumerate(self.planes):
            if run in runs:
                runs.remove(run)
                if not runs:
                    self.filter.clear(plane)


def _by_expiry(run: IdRun) -> tuple[int, int]:
    return run.last_expiry_ms, run.number


def planes_in(bits: int) -> list[int]:
    """Return the numbers of the planes whose bits are set."""
    return [plane for plane in range(PLANES) if bits >> plane & 1]
