"""Compares a standard query with its types as statements of their own, in chDB.

Run: .venv/bin/python -m bench.queries.standard --folder DIR [--events 10000000] [--runs 7]

Both are compiled by the product and run in turn, one statement after the other, over thirty days of
the biggest website and of a medium-sized one. CPU is that of the whole process, which is the
measurement that a busy machine distorts least.
"""

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bench.dataset.generate import ensure_dataset
from bench.queries.sessions import LIMITS, MONTH, WARM_UPS, cpu_s
from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.dialect.parameters import encode_parameters
from headrace.base.logs import get_logger
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.store import CHDB_DIALECT
from headrace.query.sql.compile import compile_query
from headrace.query.standard.check import check_standard, decode_standard
from headrace.query.standard.compile import compile_breakdowns
from headrace.query.standard.plan import StandardPlan

_OF_EVENTS = ("pages", "countries", "browsers", "systems", "devices", "events")
_OF_SESSIONS = ("entry_pages", "exit_pages", "referrers", "campaigns")
CASES: Mapping[str, Sequence[str]] = {
    "summary and timeseries": ("summary", "timeseries"),
    "countries and devices": ("countries", "devices"),
    "breakdowns of events": _OF_EVENTS,
    "breakdowns of sessions": _OF_SESSIONS,
    "an overview": ("summary", "timeseries", *_OF_EVENTS, *_OF_SESSIONS),
}


def plan_of(website: str, types: Sequence[str], compare: str | None) -> StandardPlan:
    """Return the plan of types over the month."""
    body = msgspec.json.encode({"types": types, "compare": compare, **MONTH})
    return check_standard(decode_standard(body), WebsiteId(website), now_ms=0)


def statements(plan: StandardPlan) -> Iterator[CompiledQuery]:
    """Return the statements of a plan."""
    for one in plan.summary:
        yield compile_query(one, CHDB_DIALECT)
    for breakdowns in plan.breakdowns.values():
        yield compile_breakdowns(breakdowns, CHDB_DIALECT).query


def cpu_ms(session: ChdbSession, queries: Sequence[CompiledQuery]) -> float:
    """Run statements one after the other and return their CPU time."""
    before_s = cpu_s()
    for query in queries:
        session.select(query.sql, encode_parameters(query.parameters), LIMITS, "bench")
    return (cpu_s() - before_s) * 1e3


def compare_case(
    session: ChdbSession, website: str, types: Sequence[str], compare: str | None, runs: int
) -> str:
    """Return the medians of both ways, and their ratio."""
    shared = list(statements(plan_of(website, types, compare)))
    alone = [one for name in types for one in statements(plan_of(website, [name], compare))]
    costs = [(cpu_ms(session, shared), cpu_ms(session, alone)) for _ in range(WARM_UPS + runs)][
        WARM_UPS:
    ]
    ours, theirs = (statistics.median(column) for column in zip(*costs, strict=True))
    counts = f"{len(shared):2} / {len(alone):2}"
    return f"{counts} {ours:9.1f} {theirs:9.1f} {ours / theirs:6.2f}"


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
        for compare in (None, "previous_period"):
            title = f"{name} website{', compared' if compare else ''}"
            print(f"{title:32}statements  CPU ms     alone  ratio")
            for case, types in CASES.items():
                line = compare_case(session, website, types, compare, options.runs)
                print(f"{case:34}{line}", flush=True)
    session.close()
    engine.close()


if __name__ == "__main__":
    main()
