"""Derives the resources for a billion events a day from the measurements of a run, in Markdown."""

from collections.abc import Mapping, Sequence

from bench.cluster.ingestion import CLICKHOUSE_US, HEADRACE_US, LOG_BYTES
from bench.cluster.queries import DISK_BYTES, QUERY_CPU_MS
from bench.report.measurements import TIMES, Measurement, format_number

DAILY_EVENTS = 1_000_000_000
PEAK_FACTOR = 3
"""The busiest hour has about three times the events of the mean one."""

MAX_UTILIZATION = 0.5
"""Usable share of a core; the rest is for large merges and the load of a failed machine."""

CLAIM_US = 31
"""Use of Valkey's single core per event id; measured for ADR 19, not in this run."""

REPLICAS = 2
OUTAGE_S = 4 * 3600
DAYS = 90
_REQUIRED = (HEADRACE_US, CLICKHOUSE_US, LOG_BYTES, DISK_BYTES, QUERY_CPU_MS)


def cluster_sizing_lines(measurements: Sequence[Measurement]) -> list[str]:
    """Return the calculation, one step per row; nothing if a measurement is missing."""
    values = {
        measurement.title: measurement.value for measurement in measurements if measurement.runs
    }
    if any(title not in values for title in _REQUIRED):
        return []
    rows = _rows(values)
    return ["| What | Calculation | Result |", "|---|---|---|", *map(_line, rows)]


def _rows(values: Mapping[str, float]) -> list[tuple[str, str, str]]:
    mean = DAILY_EVENTS / 86_400
    peak = mean * PEAK_FACTOR
    disk, log = values[DISK_BYTES], values[LOG_BYTES]
    return [
        ("events a second", f"{DAILY_EVENTS:,} / 86,400 s", format_number(mean)),
        (
            "in the busiest hour",
            f"{format_number(mean)} {TIMES} {PEAK_FACTOR}",
            format_number(peak),
        ),
        _cores("cores of all Headrace machines", peak, values[HEADRACE_US], 1),
        _cores("cores of all ClickHouse servers", peak, values[CLICKHOUSE_US], REPLICAS),
        _query_cores(values[QUERY_CPU_MS]),
        _id_row(peak),
        (
            "disk of all ClickHouse servers",
            _product(
                f"{DAILY_EVENTS:,}",
                f"{format_number(disk)} bytes",
                f"{REPLICAS} replicas",
                f"{DAYS} days",
            ),
            f"{format_number(DAILY_EVENTS * disk * REPLICAS * DAYS / 1e12)} TB",
        ),
        (
            "room for the logs, all machines together",
            _product(
                format_number(peak),
                f"{format_number(log)} bytes",
                f"{OUTAGE_S:,} s without ClickHouse",
            ),
            f"{format_number(peak * log * OUTAGE_S / 1e9)} GB",
        ),
    ]


def _cores(title: str, events_s: float, event_us: float, times: int) -> tuple[str, str, str]:
    replicas = [f"{times} replicas"] if times > 1 else []
    product = _product(format_number(events_s), f"{format_number(event_us)} µs", *replicas)
    return (
        title,
        f"{product} / {MAX_UTILIZATION:g} in use",
        f"{format_number(events_s * event_us * times / 1e6 / MAX_UTILIZATION)} cores",
    )


def _query_cores(query_ms: float) -> tuple[str, str, str]:
    return (
        "and for each question a second, as large as those above",
        f"{format_number(query_ms)} ms / {MAX_UTILIZATION:g} in use",
        f"{format_number(query_ms / 1e3 / MAX_UTILIZATION)} cores",
    )


def _id_row(events_s: float) -> tuple[str, str, str]:
    share = min(1.0, MAX_UTILIZATION * 1e6 / CLAIM_US / events_s)
    return (
        "events that may have an id, with one Valkey",
        f"{MAX_UTILIZATION:g} in use / {CLAIM_US} µs / {format_number(events_s)}",
        f"{share:.0%}",
    )


def _product(*factors: str) -> str:
    return f" {TIMES} ".join(factors)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
