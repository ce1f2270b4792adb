"""Writes the tables of a `bench.cluster` run into the page on the cluster's performance.

Run: .venv/bin/python -m bench.cluster.page bench/results/FILE.json [FILE.json ...]
"""

from collections.abc import Sequence
from pathlib import Path

from bench.cluster.sizing import cluster_sizing_lines
from bench.report.page import fill_section, main, measurement_lines
from bench.report.results import Results

PAGE = Path(__file__).parents[2] / "docs" / "performance-cluster.md"


def fill_cluster_page(text: str, runs: Sequence[Results]) -> str:
    """Return the page with its tables replaced."""
    tables = "\n\n".join("\n".join(measurement_lines(results)) for results in runs)
    measurements = [measurement for results in runs for measurement in results.measurements]
    text = fill_section(text, "figures", tables)
    return fill_section(text, "calculation", "\n".join(cluster_sizing_lines(measurements)))


if __name__ == "__main__":
    main(fill_cluster_page, PAGE, __doc__)
