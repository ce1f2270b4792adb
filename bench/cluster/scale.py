"""Sizes of the cluster benchmark: a full run, or a quick one."""

from msgspec import Struct


class ClusterScale(Struct, frozen=True):
    """Sizes of a run. `turn_s` is the length of one turn of load."""

    runs: int = 5
    turn_s: int = 3
    events: int = 1_000_000
    query_runs: int = 9
    freshness_runs: int = 15
    kills: int = 3
    down_s: float = 3.0


QUICK = ClusterScale(
    runs=2, turn_s=2, events=100_000, query_runs=3, freshness_runs=5, kills=1, down_s=2.0
)
