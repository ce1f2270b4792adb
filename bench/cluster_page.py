"""Writes the tables of a run of `bench.cluster` into the page on the cluster's performance.

Run: .venv/bin/python -m bench.cluster_page bench/results/FILE.json [FILE.json ...]
"""

from collections.abc import Sequence
from pathlib import Path

from bench.cluster_sizing import cluster_sizing_lines
from bench.page import figure_lines, fill_marked, main
from bench.results import Results

PAGE = Path(__file__).parent.parent / "docs" / "performance-cluster.md"


def fill_cluster_page(text: str, runs: Sequence[Results]) -> str:
    """Return the page with its tables made anew."""
    tables = "\n\n".join("\n".join(figure_lines(results)) for results in runs)
    figures = [figure for results in runs for figure in results.figures]
    text = fill_marked(text, "figures", tables)
    return fill_marked(text, "calculation", "\n".join(cluster_sizing_lines(figures)))


if __name__ == "__main__":
    main(fill_cluster_page, PAGE, __doc__)
