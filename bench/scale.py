"""How much is measured: all of it, or a quick look."""

from pathlib import Path

from msgspec import Struct


class Scale(Struct, frozen=True, kw_only=True):
    """Sizes of a run. `folder` is on the disk that is measured and keeps data sets between runs.

    `turn_s` is how long one server is driven at a time, `sustained_s` how long a sustained load is;
    there are `sustained_runs` of each kind.
    """

    folder: Path
    runs: int = 5
    turn_s: int = 4
    sustained_runs: int = 3
    sustained_s: int = 60
    query_runs: int = 9
    small_events: int = 1_000_000
    events: int = 10_000_000


def quick(folder: Path) -> Scale:
    """Return what takes three minutes; too little for figures to quote."""
    return Scale(
        folder=folder,
        runs=2,
        turn_s=2,
        sustained_runs=1,
        sustained_s=10,
        query_runs=3,
        small_events=100_000,
        events=1_000_000,
    )
