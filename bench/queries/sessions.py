"""Compares queries over sessions and profiles with equivalent queries over events, in chDB.

Run: .venv/bin/python -m bench.queries.sessions --folder DIR [--events 10000000] [--runs 7]

The like query of one over sessions or profiles is the query over events that distinguishes them,
too: "distinct sessions". It is what the bound of twice its CPU is measured by. Beside plain counts
of events, the other pairs show what distinguishing costs.

The product compiles both. They run in turn over thirty days of the biggest website and of a
medium-sized one. CPU is that of the whole process, which is the measurement that a busy machine
distorts least.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.dataset.generate import ensure_dataset
from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.base.logs import get_logger
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import CHDB_DIALECT, QueryLimits
from headrace.query.sql.compile import compile_query
from headrace.query.validate.check import check_query
from headrace.query.validate.decode import decode_query

MONTH = {"startDate": "2026-02-10", "endDate": "2026-03-11", "timezone": "Europe/Berlin"}
LIMITS = QueryLimits(timeout_s=60, max_memory_bytes=4_000_000_000)
WARM_UPS = 2

Body = Mapping[str, object]


class QueryCost(NamedTuple):
    """The cost of one query."""

    cpu_ms: float
    wall_ms: float


def body(table: str, selects: str, *groups: str, **root: str) -> Body:
    """Return a query body; `selects` have the form `avg duration, count *`."""
    select_items = [
        {"aggregate": aggregate, "field": field, "alias": f"figure {number}"}
        for number, (aggregate, field) in enumerate(map(str.split, selects.split(",")))
    ]
    return {"query": {"table": table, "selects": select_items, "groupBy": groups}, **MONTH, **root}


PAIRS: Mapping[str, tuple[Body, Body]] = {
    "average duration by country / of a number": (
        body("sessions", "avg duration", "country"),
        body("events", "avg load_time", "country"),
    ),
    "the same / distinct sessions, and a number": (
        body("sessions", "avg duration", "country"),
        body("events", "uniq session_id, avg load_time", "country"),
    ),
    "sessions by country / distinct sessions": (
        body("sessions", "count *", "country"),
        body("events", "uniq session_id", "country"),
    ),
    "top entry paths / top paths": (
        body("sessions", "count *", "entry_path"),
        body("events", "count *", "path"),
    ),
    "bounces by day / events by day": (
        body("sessions", "count *", "is_bounce", granularity="daily"),
        body("events", "count *", "event_name", granularity="daily"),
    ),
    "people by country / distinct people": (
        body("profiles", "count *", "country"),
        body("events", "uniq anonymous_id", "country"),
    ),
    "people by country / events by country": (
        body("profiles", "count *", "country"),
        body("events", "count *", "country"),
    ),
    "people and a mean / distinct, and a mean": (
        body("profiles", "count *, avg event_count"),
        body("events", "uniq anonymous_id, avg load_time"),
    ),
}


def run_query(session: ChdbSession, website: str, query: Body) -> QueryCost:
    """Run a query for one website."""
    plan = check_query(decode_query(msgspec.json.encode(query)), WebsiteId(website), now_ms=0)
    compiled = compile_query(plan, CHDB_DIALECT)
    texts = encode_parameters(compiled.parameters)
    before_s, started_s = cpu_s(), time.perf_counter()
    session.select(compiled.sql, texts, LIMITS, "bench")
    return QueryCost((cpu_s() - before_s) * 1e3, (time.perf_counter() - started_s) * 1e3)


def compare(session: ChdbSession, website: str, pair: tuple[Body, Body], runs: int) -> str:
    """Run both queries in turn and return the medians and their ratios."""
    select_items = [
        [run_query(session, website, one) for one in pair] for _ in range(WARM_UPS + runs)
    ]
    derived, baseline = (
        [costs[index] for costs in select_items[WARM_UPS:]] for index in range(len(pair))
    )
    cpu, baseline_cpu = (
        _median([one.cpu_ms for one in derived]),
        _median([one.cpu_ms for one in baseline]),
    )
    wall_ratio = _median([a.wall_ms / b.wall_ms for a, b in zip(derived, baseline, strict=True)])
    return f"{cpu:8.1f} {baseline_cpu:8.1f} {cpu / baseline_cpu:6.2f} {wall_ratio:10.2f}"


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def cpu_s() -> float:
    """Return the CPU time of this process and its threads since it started."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where data sets are kept")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    dataset = ensure_dataset(options.folder, events=options.events)
    engine = ChdbInstance(dataset.paths.store, log=get_logger())
    engine.open()
    session = engine.session()
    middle = len(dataset.websites) // 2
    for name, website in (("biggest", dataset.websites[0]), ("middle", dataset.websites[middle])):
        print(f"{name + ' website':44}  CPU ms     like  ratio wall ratio")
        for query, pair in PAIRS.items():
            print(f"{query:44}{compare(session, website, pair, options.runs)}", flush=True)
    session.close()
    engine.close()


if __name__ == "__main__":
    main()
