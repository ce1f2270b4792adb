"""`python -m bench.cluster`: measures Headrace before ClickHouse, PostgreSQL and Valkey or Redis.

Everything runs on this one machine, and all of it shares its cores. Prints one table; a full run is
kept in bench/results. Ten minutes on two quiet cores, three with --quick.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import cluster_freshness, cluster_ingestion, cluster_questions, cluster_recovery
from bench.cluster_place import Place, place
from bench.cluster_scale import QUICK, ClusterScale
from bench.cluster_sizing import cluster_sizing_lines
from bench.command import begin, benchmark_parser, keep_full_run
from bench.figures import Figure
from bench.results import collect, describe_machine, print_results, write_results

PARTS: Mapping[str, Callable[[Place, ClusterScale], list[Figure]]] = {
    "ingestion": cluster_ingestion.measure,
    "questions": cluster_questions.measure,
    "freshness": cluster_freshness.measure,
    "recovery": cluster_recovery.measure,
}


def main() -> None:
    """Run the parts and report."""
    options = begin(benchmark_parser("bench.cluster", __doc__, PARTS))
    scale = QUICK if options.quick else ClusterScale()
    machine = describe_machine(options.folder)
    figures: list[Figure] = []
    for part in options.only or PARTS:
        print(f"measuring {part} ...", file=sys.stderr, flush=True)
        figures += _measure(part, options.folder, scale)
        if options.json:  # after each part: a later one may fail
            write_results(collect(figures, machine), options.json)
    results = collect(figures, machine)
    print_results(results)
    print("\n".join(["", *cluster_sizing_lines(figures)]))
    keep_full_run(results, options, page_program="bench.cluster_page", suffix="-cluster")


def _measure(part: str, folder: Path, scale: ClusterScale) -> list[Figure]:
    """Measure one part between servers of its own: what another left behind would be merged."""
    with (
        tempfile.TemporaryDirectory(prefix="cluster-", dir=folder) as own,
        place(Path(own), datasets=folder) as where,
    ):
        return PARTS[part](where, scale)


if __name__ == "__main__":
    main()
