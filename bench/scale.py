"""Sizes of a run: a full one, or a quick one."""

from pathlib import Path

from msgspec import Struct

HUGE_EVENTS = 100_000_000
GROWTH_STEPS = ("cold", "questions", "types", "overviews")
"""What is measured of each size of a data set; each step has a service of its own."""


class Scale(Struct, frozen=True, kw_only=True):
    """Sizes of a run. `folder` is on the measured disk and keeps data sets between runs.

    `turn_s` is the length of one turn of a server, `sustained_s` that of a sustained load; there
    are `sustained_runs` of each kind. `growth_events` are the sizes of data sets for which all that
    a size needs is measured, `growth_steps` of it: `growth_runs` times warm, `cold_runs` times
    after a cold start.
    """

    folder: Path
    runs: int = 5
    turn_s: int = 4
    sustained_runs: int = 3
    sustained_s: int = 60
    query_runs: int = 9
    small_events: int = 1_000_000
    events: int = 10_000_000
    growth_events: tuple[int, ...] = (1_000_000, 10_000_000)
    growth_steps: tuple[str, ...] = GROWTH_STEPS
    growth_runs: int = 20
    cold_runs: int = 3


def quick(folder: Path) -> Scale:
    """Return sizes for a run of three minutes, which is too short for quotable measurements."""
    return Scale(
        folder=folder,
        runs=2,
        turn_s=2,
        sustained_runs=1,
        sustained_s=10,
        query_runs=3,
        small_events=100_000,
        events=1_000_000,
        growth_events=(100_000, 1_000_000),
        growth_runs=5,
        cold_runs=1,
    )
