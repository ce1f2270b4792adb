"""Metrics. Their labels have values of closed sets only, and never one of a caller.

The library is imported where metrics are made: the supervisor and most commands have none, and it
takes a third of the time in which they start.
"""

import os
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

METRICS_DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The directory in which a service's processes share metrics; the supervisor sets it."""


class MetricKind(Enum):
    """The types of metrics, as Prometheus defines them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True):
    """One metric. `runbook` says what an operator does when it rises.

    Label values come from closed sets only, so that the number of time series is bounded.
    """

    name: str
    kind: MetricKind
    help: str
    runbook: str
    labels: tuple[str, ...] = ()


METRICS: tuple[Metric, ...] = (
    Metric(
        "headrace_http_requests_total",
        MetricKind.COUNTER,
        "requests answered",
        "statuses of 500 and above are ours: look for request_failed in the log",
        ("endpoint", "status"),
    ),
    Metric(
        "headrace_items_total",
        MetricKind.COUNTER,
        "items by outcome, one for each item: accepted and stored, repeated, expired, refused, "
        "quarantined",
        "refused: a client breaks the rules; expired: it sends items that are older than their "
        "website keeps rows; quarantined: the store rejected rows",
        ("stream", "outcome"),
    ),
    Metric(
        "headrace_log_appended_bytes_total",
        MetricKind.COUNTER,
        "bytes made durable in the log",
        "follows the traffic",
    ),
    Metric(
        "headrace_log_fsync_seconds",
        MetricKind.HISTOGRAM,
        "time of one fsync of the log",
        "the disk is slow or busy; acknowledgements wait for it",
    ),
    Metric(
        "headrace_log_backlog_bytes",
        MetricKind.GAUGE,
        "durable bytes that are not in the store yet",
        "the engine is down or slower than ingestion; over max_backlog_bytes events get 503",
    ),
    Metric(
        "headrace_disk_free_bytes",
        MetricKind.GAUGE,
        "free bytes of the file system of the data directory",
        "it should not fall: below min_free_bytes events get 503",
    ),
    Metric(
        "headrace_load_seconds",
        MetricKind.HISTOGRAM,
        "time of storing one batch",
        "the disk is slow, or the engine is busy with queries or merges",
    ),
    Metric(
        "headrace_logs_unreadable",
        MetricKind.GAUGE,
        "logs with a part that cannot be read; what precedes it, and all other logs, is stored",
        "a disk fails or permissions are wrong: look for log_unreadable in the log",
    ),
    Metric(
        "headrace_load_failures_total",
        MetricKind.COUNTER,
        "batches that were not stored at the first attempt",
        "look for load_failed in the log",
    ),
    Metric(
        "headrace_queries_total",
        MetricKind.COUNTER,
        "queries by outcome",
        "timed_out and too_large: queries need a shorter range or fewer groups",
        ("table", "outcome"),
    ),
    Metric(
        "headrace_query_seconds",
        MetricKind.HISTOGRAM,
        "time of one query in the store, including time in the queue",
        "more queries than query_concurrency, or more expensive ones",
    ),
    Metric(
        "headrace_saved_answers_total",
        MetricKind.COUNTER,
        "answers of saved queries by outcome: answered, or unchanged (304), which reads no rows",
        "only answered costs; unchanged stays 0 where clients send no If-None-Match",
        ("outcome",),
    ),
    Metric(
        "headrace_selects_total",
        MetricKind.COUNTER,
        "selects by the source of their rows: an execution of their own, a running equal select, "
        "or the result cache",
        "only run costs; cached falls where a website receives events often",
        ("source",),
    ),
    Metric(
        "headrace_selects_running",
        MetricKind.GAUGE,
        "selects that run in the engine",
        "at query_concurrency others wait; selects that stay without clients are a bug",
    ),
    Metric(
        "headrace_selects_waiting",
        MetricKind.GAUGE,
        "selects in the queue",
        "the engine is busy: look for expensive queries, "
        "or raise query_concurrency where cores are free",
    ),
    Metric(
        "headrace_selects_refused_total",
        MetricKind.COUNTER,
        "selects answered with 503: the queue was full (full), no slot was free within "
        "query_queue_timeout_s (turn), or earlier events were not stored by then (loading)",
        "full and turn: as for headrace_selects_waiting; loading: as for headrace_load_seconds",
        ("reason",),
    ),
    Metric(
        "headrace_process_starts_total",
        MetricKind.COUNTER,
        "processes started by the supervisor",
        "more than one per process: look for process_died in the log",
        ("process",),
    ),
)

_BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15)


class Metrics:
    """The metrics of this process; `METRICS_DIRECTORY_VARIABLE` merges those of its siblings."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 - see the module docstring

        registry = CollectorRegistry()
        self._registry = registry
        self._counters = {
            m.name: _counter(m, registry) for m in _metrics_of_kind(MetricKind.COUNTER)
        }
        self._gauges = {m.name: _gauge(m, registry) for m in _metrics_of_kind(MetricKind.GAUGE)}
        self._histograms = {
            m.name: _histogram(m, registry) for m in _metrics_of_kind(MetricKind.HISTOGRAM)
        }
        self._children: dict[tuple[str, ...], Counter] = {}

    def count(self, name: str, amount: float = 1, *labels: str) -> None:
        """Add to a counter; label values in the order of its row in `METRICS`."""
        child = self._children.get((name, *labels))
        if child is None:
            counter = self._counters[name]
            child = counter.labels(*labels) if labels else counter
            self._children[(name, *labels)] = child
        child.inc(amount)

    def observe(self, name: str, value: float) -> None:
        """Add one observation to a histogram, in seconds."""
        self._histograms[name].observe(value)

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._gauges[name].set(value)

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format, over all processes of the service."""
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415
        from prometheus_client.multiprocess import MultiProcessCollector  # noqa: PLC0415

        if METRICS_DIRECTORY_VARIABLE not in os.environ:
            return generate_latest(self._registry)
        combined = CollectorRegistry()
        MultiProcessCollector(combined)  # type: ignore[no-untyped-call]  # the library's own gap
        return generate_latest(combined)


def _metrics_of_kind(kind: MetricKind) -> tuple[Metric, ...]:
    return tuple(metric for metric in METRICS if metric.kind is kind)


def _counter(metric: Metric, registry: "CollectorRegistry") -> "Counter":
    from prometheus_client import Counter  # noqa: PLC0415

    return Counter(metric.name, metric.help, metric.labels, registry=registry)


def _gauge(metric: Metric, registry: "CollectorRegistry") -> "Gauge":
    from prometheus_client import Gauge  # noqa: PLC0415

    return Gauge(
        metric.name, metric.help, metric.labels, registry=registry, multiprocess_mode="mostrecent"
    )


def _histogram(metric: Metric, registry: "CollectorRegistry") -> "Histogram":
    from prometheus_client import Histogram  # noqa: PLC0415

    return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=_BUCKETS_S)
