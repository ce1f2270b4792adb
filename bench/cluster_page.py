"""Writes the tables of a run of `bench.cluster` into the page on the cluster's performance.

Run: .venv/bin/python -m bench.cluster_page bench/results/FILE.json [FILE.json ...]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.cluster_sizing import cluster_sizing_lines
from bench.page import figure_lines, fill_marked
from bench.results import Results, read_results

PAGE = Path(__file__).parent.parent / "docs" / "performance-cluster.md"


def fill_cluster_page(text: str, runs: Sequence[Results]) -> str:
    """Return the page with its tables made anew."""
    tables = "\n\n".join("\n".join(figure_lines(results)) for results in runs)
    figures = [figure for results in runs for figure in results.figures]
    text = fill_marked(text, "figures", tables)
    return fill_marked(text, "calculation", "\n".join(cluster_sizing_lines(figures)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    runs = [read_results(file) for file in options.files]
    options.page.write_text(fill_cluster_page(options.page.read_text(), runs))


if __name__ == "__main__":
    main()
