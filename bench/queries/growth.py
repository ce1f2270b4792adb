"""What a number of stored events needs: queries, overviews, cold starts, memory and disk, by size.

Run: .venv/bin/python -m bench --only growth [--huge | --size EVENTS] [--step STEP] [--runs N]

For each size of `Scale.growth_events` the real service is queried over HTTP about a month of the
biggest of twenty websites, without the cache of results. Sizes and steps may be measured in runs of
their own; `bench.report.page` joins the results of one commit. A cold start is one with an empty
page cache: the libraries come from the disk, too. Without the right to empty it (root) nothing cold
is measured. Queries have longer deadlines than by default, so that slow ones are measured and do
not fail. The thresholds are those of a hundred million events on two cores.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from bench.dataset.generate import Dataset, ensure_dataset
from bench.load import page_cache
from bench.load.processes import anonymous_mb, memory_mb, peak_memory_mb
from bench.operation.footprint import measure_disk, start_timed
from bench.queries.dashboards import OVERVIEW, measure_overviews, measure_types, overviews
from bench.queries.latency import (
    MONTH,
    NO_CACHE,
    ChdbClient,
    HttpClient,
    copied_store,
    measure_pair,
    serving,
)
from bench.queries.query_list import QUERIES, BenchmarkQuery
from bench.report.measurements import Measurement, Threshold
from bench.scale import Scale
from testing.service import Service

WARM_GROUP: Final = "ten questions, a month of the biggest website, warm"
COLD_GROUP: Final = "the first question after a cold start"
MACHINE_GROUP: Final = "the machine"
WARM_MS: Final = Threshold(fixed=800, of_p95=True)
TOP_PAGES_MS: Final = Threshold(fixed=300, of_p95=True)
COLD_MS: Final = Threshold(fixed=3_000)
READY_S: Final = Threshold(fixed=3)
ENGINE_MB: Final = Threshold(fixed=1_200)
SETTINGS: Final = {
    **NO_CACHE,
    "HEADRACE_QUERY_TIMEOUT_S": "55",
    "HEADRACE_QUERY_QUEUE_TIMEOUT_S": "55",
}
_TOP_PAGES: Final = "top pages with exact visitors"


class ColdStart(NamedTuple):
    """A start with an empty page cache, and the first query after it."""

    ready_s: float
    first_ms: float


def measure(scale: Scale) -> list[Measurement]:
    """Measure all sizes, in the order of what is measured."""
    measured: list[Measurement] = []
    for events in scale.growth_events:
        print(f"measuring {events:,} events ...", file=sys.stderr, flush=True)
        measured += measure_size(ensure_dataset(scale.folder, events=events), scale)
    titles = {(one.group, one.title): None for one in measured}
    return [one for title in titles for one in measured if title == (one.group, one.title)]


def measure_size(dataset: Dataset, scale: Scale) -> list[Measurement]:
    """Measure the steps for one size, cold starts first."""
    steps: Mapping[str, Callable[[Dataset, Scale], list[Measurement]]] = {
        "cold": _measure_cold,
        "questions": _measure_queries,
        "types": partial(_measure_serving, title="standard types", measure_all=measure_types),
        "overviews": partial(_measure_serving, title="overviews", measure_all=measure_overviews),
    }
    measured = [
        one for step in steps if step in scale.growth_steps for one in steps[step](dataset, scale)
    ]
    return sorted(measured, key=lambda one: one.group in (COLD_GROUP, MACHINE_GROUP))


def _measure_queries(dataset: Dataset, scale: Scale) -> list[Measurement]:
    with copied_store(dataset) as engine:

        def measure_queries(
            service: Service, dataset: Dataset, *, runs: int
        ) -> Iterator[Measurement]:
            http_client, chdb_client = HttpClient(service, dataset), ChdbClient(engine, dataset)
            for query in QUERIES:
                measured = measure_pair(
                    query, http_client, chdb_client, runs=runs, group=WARM_GROUP
                )
                yield _with_bound(measured, dataset)

        return _measure_serving(
            dataset, scale, title="the ten questions", measure_all=measure_queries
        )


def _measure_serving(
    dataset: Dataset, scale: Scale, *, title: str, measure_all: Callable[..., Iterable[Measurement]]
) -> list[Measurement]:
    """Measure with a service of its own, and the memory of its engine afterwards."""
    with serving(dataset, SETTINGS) as service:
        measured = list(measure_all(service, dataset, runs=scale.growth_runs))
        return [*measured, _measure_memory(service, dataset, title)]


def _with_bound(measurement: Measurement, dataset: Dataset) -> Measurement:
    bound = TOP_PAGES_MS if measurement.title == _TOP_PAGES else WARM_MS
    return replace(measurement, threshold=bound, events=dataset.events)


def _measure_cold(dataset: Dataset, scale: Scale) -> list[Measurement]:
    """Start cold for each query and run, and time the start and the query; measure the disk."""
    disk = measure_disk(dataset, MACHINE_GROUP)
    can_be_cold = page_cache.can_empty()
    turns = {
        title: [_start_cold(dataset, run_first) for _ in range(scale.cold_runs * can_be_cold)]
        for title, run_first in _first_queries(dataset).items()
    }
    first = [
        Measurement(
            group=COLD_GROUP,
            title=title,
            unit="ms",
            runs=tuple(start.first_ms for start in starts),
            threshold=COLD_MS,
        )
        for title, starts in turns.items()
    ]
    ready = Measurement(
        group=MACHINE_GROUP,
        title="start with an empty page cache, to ready",
        unit="s",
        runs=tuple(start.ready_s for starts in turns.values() for start in starts),
        threshold=READY_S,
    )
    skip_reason = "" if can_be_cold else page_cache.SKIP_REASON
    cold = [replace(one, skip_reason=skip_reason) for one in (*first, ready)]
    return [replace(one, events=dataset.events) for one in (*cold, disk)]


def _first_queries(dataset: Dataset) -> Mapping[str, Callable[[Service], float]]:
    """Return what runs first after a start, a query or an overview: it returns milliseconds."""

    def first(query: BenchmarkQuery) -> Callable[[Service], float]:
        return lambda service: HttpClient(service, dataset).run_query(query, MONTH).ms

    def overview(service: Service) -> float:
        with overviews(service, dataset, 1) as opened:
            return opened.open()[0]

    return {**{query.name: first(query) for query in QUERIES}, OVERVIEW: overview}


def _start_cold(dataset: Dataset, run_first: Callable[[Service], float]) -> ColdStart:
    service = Service(Path(dataset.data), settings=SETTINGS)
    page_cache.empty()
    try:
        ready_s = start_timed(service)
        result = ColdStart(ready_s, run_first(service))
        service.stop()
    finally:
        service.kill()
    return result


def _measure_memory(service: Service, dataset: Dataset, title: str) -> Measurement:
    (engine,) = service.child_pids("engine")
    return Measurement(
        group=MACHINE_GROUP,
        title=f"memory of the engine at its most, {title}",
        unit="MB",
        runs=(peak_memory_mb(engine),),
        threshold=ENGINE_MB,
        remark=(
            f"{memory_mb([engine]):,.0f} MB at the end,"
            f" {anonymous_mb([engine]):,.0f} MB of it no file's"
        ),
        events=dataset.events,
    )
