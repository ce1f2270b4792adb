"""`python -m bench.cluster`: measures Headrace with ClickHouse, PostgreSQL and Valkey or Redis.

Everything runs on this one machine and shares its cores. Prints one table; a full run is saved in
bench/results. Takes ten minutes on two idle cores, three with --quick.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.cluster import freshness, ingestion, queries, recovery
from bench.cluster.environment import ClusterEnv, run_cluster_env
from bench.cluster.scale import QUICK, ClusterScale
from bench.cluster.sizing import cluster_sizing_lines
from bench.command import benchmark_parser, parse_options, save_full_run
from bench.report.measurements import Measurement
from bench.report.results import collect, describe_machine, print_results, write_results

PARTS: Mapping[str, Callable[[ClusterEnv, ClusterScale], list[Measurement]]] = {
    "ingestion": ingestion.measure,
    "questions": queries.measure,
    "freshness": freshness.measure,
    "recovery": recovery.measure,
}


def main() -> None:
    """Run the parts and report."""
    options = parse_options(benchmark_parser("bench.cluster", __doc__, PARTS))
    scale = QUICK if options.quick else ClusterScale()
    machine = describe_machine(options.folder)
    measurements: list[Measurement] = []
    for part in options.only or PARTS:
        print(f"measuring {part} ...", file=sys.stderr, flush=True)
        measurements += _measure(part, options.folder, scale)
        if options.json:  # after each part: a later one may fail
            write_results(collect(measurements, machine), options.json)
    results = collect(measurements, machine)
    print_results(results)
    print("\n".join(["", *cluster_sizing_lines(measurements)]))
    save_full_run(results, options, page_program="bench.cluster.page", suffix="-cluster")


def _measure(part: str, folder: Path, scale: ClusterScale) -> list[Measurement]:
    """Measure one part with new servers, because merges of an earlier part would distort it."""
    with (
        tempfile.TemporaryDirectory(prefix="cluster-", dir=folder) as name,
        run_cluster_env(Path(name), datasets=folder) as env,
    ):
        return PARTS[part](env, scale)


if __name__ == "__main__":
    main()
