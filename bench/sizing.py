"""What the figures of a run mean for the size of a machine, worked out and written in Markdown."""

from collections.abc import Sequence

from bench import footprint, ingestion
from bench.figures import Figure, shown

DAILY_EVENTS = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
DAYS_A_MONTH = 30
PEAK = 3
"""The busiest hour of a website has about three times the events of its mean hour."""

_HEAD = (
    "| Events a day | Mean events/s | Busiest hour, about | CPU then, batches of 100 "
    "| CPU then, single events | Disk a month |"
)


def sizing_lines(figures: Sequence[Figure]) -> list[str]:
    """Return a table from events a day to cores and disk; nothing where a figure is missing."""
    values = {figure.what: figure.value for figure in figures if figure.runs}
    needed = (ingestion.WHOLE_BATCH, ingestion.WHOLE_SINGLE, footprint.DISK_OF_ONE)
    if any(what not in values for what in needed):
        return []
    batch_us, single_us, event_bytes = (values[what] for what in needed)
    rows = [_row(events, batch_us, single_us, event_bytes) for events in DAILY_EVENTS]
    return [_HEAD, f"|{'---|' * 6}", *rows]


def _row(events: int, batch_us: float, single_us: float, event_bytes: float) -> str:
    mean = events / 86_400
    busiest = mean * PEAK
    cells = (
        f"{events:,}",
        shown(mean),
        shown(busiest),
        _cores(busiest * batch_us),
        _cores(busiest * single_us),
        _disk(events * DAYS_A_MONTH * event_bytes),
    )
    return f"| {' | '.join(cells)} |"


def _cores(microseconds_a_second: float) -> str:
    return f"{shown(microseconds_a_second / 1e6)} cores"


def _disk(size_bytes: float) -> str:
    return f"{shown(size_bytes / 1e9)} GB"
