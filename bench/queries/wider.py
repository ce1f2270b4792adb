r"""The other questions over HTTP against hand-written SQL in bare chDB: comparisons to funnels.

Run: .venv/bin/python -m bench.queries.wider --folder DIR [--events 10000000] [--runs 7]

As in `latency`: the service runs on the data set, bare chDB on a copy of its store, in turn, with
the result cache off.
"""

import argparse
import http.client
import statistics
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from bench.baselines.chdb import BareChdb
from bench.dataset.generate import Dataset, ensure_dataset
from bench.load.processes import measure_usage, pids_of
from bench.queries.latency import MONTH, WARM_UPS, Rows, compare_rows, copied_store, serving
from bench.queries.wider_queries import QUERIES, Answer, WiderQuery
from testing.service import Service


class Cost(NamedTuple):
    """What one run took."""

    ms: float
    cpu_ms: float


def run_over_http(service: Service, dataset: Dataset, query: WiderQuery) -> tuple[Cost, Answer]:
    """Send a query and return its cost and the decoded answer."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    path = quote(query.path.format(first=MONTH.first, last=MONTH.last), safe="?=&/")
    separator = "&" if "?" in path else "?"
    url = f"/v1/query/{path}{separator}website_id={dataset.websites[0]}"
    headers = {"Authorization": f"Bearer {dataset.key}", "Content-Type": "application/json"}
    body = None if query.body is None else msgspec.json.encode(query.body)
    connection.connect()
    with measure_usage(pids_of(service)) as usage:
        connection.request("GET" if body is None else "POST", url, body, headers)
        response = connection.getresponse()
        answer = response.read()
    connection.close()
    assert response.status == 200, f"{query.name}: {answer.decode()}"
    return Cost(usage.wall_s * 1e3, usage.cpu_s * 1e3), msgspec.json.decode(answer)


def run_by_hand(engine: BareChdb, dataset: Dataset, query: WiderQuery) -> tuple[Cost, Rows]:
    """Run the statements one after the other and return their cost and rows."""
    rows: Rows = []
    cpu_s, started_s = time.process_time(), time.perf_counter()
    for statement in query.statements:
        rows += engine.query(statement.format(website=dataset.websites[0]))
    cost = Cost((time.perf_counter() - started_s) * 1e3, (time.process_time() - cpu_s) * 1e3)
    return cost, rows


def measure_query(
    service: Service, engine: BareChdb, dataset: Dataset, query: WiderQuery, runs: int
) -> str:
    """Run a query both ways in turn; return a row of the table."""
    costs: list[tuple[Cost, Cost]] = []
    for _ in range(WARM_UPS + runs):
        ours, answer = run_over_http(service, dataset, query)
        theirs, rows = run_by_hand(engine, dataset, query)
        if query.rows is not None:
            compare_rows(query.name, query.rows(answer), rows)
        costs.append((ours, theirs))
    counted = costs[WARM_UPS:]
    ours_ms, theirs_ms = (statistics.median(pair[side].ms for pair in counted) for side in (0, 1))
    ours_cpu, theirs_cpu = (
        statistics.median(pair[side].cpu_ms for pair in counted) for side in (0, 1)
    )
    is_met = ours_ms <= 1.15 * theirs_ms + 3
    return (
        f"| {query.name} | {ours_ms:.1f} ms | {theirs_ms:.1f} ms | {ours_ms / theirs_ms:.2f} |"
        f" {ours_cpu / theirs_cpu:.2f} | {'yes' if is_met else '**no**'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where data sets are kept")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="", help="a part of the name")
    given = parser.parse_args()
    dataset = ensure_dataset(given.folder, events=given.events)
    print("| Query | over HTTP | by hand | ratio | CPU ratio | at most 1.15 times + 3 ms |")
    print("|---|---|---|---|---|---|")
    with copied_store(dataset) as engine, serving(dataset) as service:
        for query in QUERIES:
            if given.only in query.name:
                print(measure_query(service, engine, dataset, query, given.runs), flush=True)


if __name__ == "__main__":
    main()
