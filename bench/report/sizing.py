"""Derives the size of a machine from the measurements of a run, in Markdown."""

from collections.abc import Sequence

from bench.ingestion import cpu_cost
from bench.operation import footprint
from bench.report.measurements import Measurement, format_number

DAILY_EVENTS = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
DAYS_PER_MONTH = 30
PEAK_FACTOR = 3
"""The busiest hour of a website has about three times the events of its mean hour."""

_HEADER = (
    "| Events a day | Mean events/s | Busiest hour, about | CPU then, batches of 100 "
    "| CPU then, single events | Disk a month |"
)


def sizing_lines(measurements: Sequence[Measurement]) -> list[str]:
    """Return a table from events per day to cores and disk; nothing if a measurement is missing."""
    values = {
        measurement.title: measurement.value for measurement in measurements if measurement.runs
    }
    required = (cpu_cost.END_TO_END_BATCH, cpu_cost.END_TO_END_SINGLE, footprint.DISK_PER_EVENT)
    if any(title not in values for title in required):
        return []
    batch_us, single_us, event_bytes = (values[title] for title in required)
    rows = [_row(events, batch_us, single_us, event_bytes) for events in DAILY_EVENTS]
    return [_HEADER, f"|{'---|' * 6}", *rows]


def _row(events: int, batch_us: float, single_us: float, event_bytes: float) -> str:
    mean = events / 86_400
    peak = mean * PEAK_FACTOR
    cells = (
        f"{events:,}",
        format_number(mean),
        format_number(peak),
        _cores(peak * batch_us),
        _cores(peak * single_us),
        _disk(events * DAYS_PER_MONTH * event_bytes),
    )
    return f"| {' | '.join(cells)} |"


def _cores(cpu_us_per_s: float) -> str:
    return f"{format_number(cpu_us_per_s / 1e6)} cores"


def _disk(size_bytes: float) -> str:
    return f"{format_number(size_bytes / 1e9)} GB"
