"""What a billion events a day needs, worked out from the figures of a run, in Markdown."""

from collections.abc import Mapping, Sequence

from bench.cluster_ingestion import CLICKHOUSE_US, HEADRACE_US, LOG_BYTES
from bench.cluster_questions import DISK_BYTES, QUESTION_MS
from bench.figures import TIMES, Figure, shown

DAILY_EVENTS = 1_000_000_000
BUSIEST = 3
"""The busiest hour has about three times the events of the mean one."""

SHARE_IN_USE = 0.5
"""So much of a core may be in use: the rest is for large merges, and the load of a dead machine."""

CLAIM_US = 31
"""What one event id takes of Valkey's one core; measured for ADR 19, not in this run."""

REPLICAS = 2
OUTAGE_S = 4 * 3600
DAYS = 90
_NEEDED = (HEADRACE_US, CLICKHOUSE_US, LOG_BYTES, DISK_BYTES, QUESTION_MS)


def cluster_sizing_lines(figures: Sequence[Figure]) -> list[str]:
    """Return the calculation, a step a row; nothing where a figure is missing."""
    values = {figure.what: figure.value for figure in figures if figure.runs}
    if any(what not in values for what in _NEEDED):
        return []
    rows = _rows(values)
    return ["| What | Calculation | Result |", "|---|---|---|", *map(_line, rows)]


def _rows(values: Mapping[str, float]) -> list[tuple[str, str, str]]:
    mean = DAILY_EVENTS / 86_400
    busiest = mean * BUSIEST
    disk, log = values[DISK_BYTES], values[LOG_BYTES]
    return [
        ("events a second", f"{DAILY_EVENTS:,} / 86,400 s", shown(mean)),
        ("in the busiest hour", f"{shown(mean)} {TIMES} {BUSIEST}", shown(busiest)),
        _cores("cores of all Headrace machines", busiest, values[HEADRACE_US], 1),
        _cores("cores of all ClickHouse servers", busiest, values[CLICKHOUSE_US], REPLICAS),
        _question_cores(values[QUESTION_MS]),
        _id_row(busiest),
        (
            "disk of all ClickHouse servers",
            _product(
                f"{DAILY_EVENTS:,}", f"{shown(disk)} bytes", f"{REPLICAS} replicas", f"{DAYS} days"
            ),
            f"{shown(DAILY_EVENTS * disk * REPLICAS * DAYS / 1e12)} TB",
        ),
        (
            "room for the logs, all machines together",
            _product(shown(busiest), f"{shown(log)} bytes", f"{OUTAGE_S:,} s without ClickHouse"),
            f"{shown(busiest * log * OUTAGE_S / 1e9)} GB",
        ),
    ]


def _cores(what: str, events_s: float, event_us: float, times: int) -> tuple[str, str, str]:
    replicas = [f"{times} replicas"] if times > 1 else []
    product = _product(shown(events_s), f"{shown(event_us)} µs", *replicas)
    return (
        what,
        f"{product} / {SHARE_IN_USE:g} in use",
        f"{shown(events_s * event_us * times / 1e6 / SHARE_IN_USE)} cores",
    )


def _question_cores(question_ms: float) -> tuple[str, str, str]:
    return (
        "and for each question a second, as large as those above",
        f"{shown(question_ms)} ms / {SHARE_IN_USE:g} in use",
        f"{shown(question_ms / 1e3 / SHARE_IN_USE)} cores",
    )


def _id_row(events_s: float) -> tuple[str, str, str]:
    share = min(1.0, SHARE_IN_USE * 1e6 / CLAIM_US / events_s)
    return (
        "events that may have an id, with one Valkey",
        f"{SHARE_IN_USE:g} in use / {CLAIM_US} µs / {shown(events_s)}",
        f"{share:.0%}",
    )


def _product(*factors: str) -> str:
    return f" {TIMES} ".join(factors)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
