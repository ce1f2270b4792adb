"""Writes the tables of a results file into the page on performance.

Run: .venv/bin/python -m bench.report.page bench/results/FILE.json [FILE.json ...]

Several files are parts of one benchmark that were measured separately (`--only`, `--json`).
"""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bench.report.measurements import HEADINGS
from bench.report.results import Results, read_results
from bench.report.sizing import sizing_lines

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"


def measurement_lines(results: Results) -> Iterator[str]:
    """Return the lines of a run: its machine, and a table for each group."""
    yield f"{results.date[:10]}, commit `{results.commit}`. {results.machine.line()}."
    for group, members in groupby(results.measurements, lambda measurement: measurement.group):
        yield from ("", f"**{group[:1].upper()}{group[1:]}**", "")
        yield _row(HEADINGS)
        yield f"|{'---|' * len(HEADINGS)}"
        yield from (_row(measurement.cells()) for measurement in members)


def fill_page(text: str, runs: Sequence[Results]) -> str:
    """Return a page with its tables replaced; they are between markers in comments."""
    tables = "\n\n".join("\n".join(measurement_lines(results)) for results in runs)
    measurements = [measurement for results in runs for measurement in results.measurements]
    text = fill_section(text, "figures", tables)
    return fill_section(text, "sizing", "\n".join(sizing_lines(measurements)))


def fill_section(text: str, name: str, content: str) -> str:
    """Return a page with the text between the markers of `name` replaced."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    section = re.compile(f"{begin}.*?{end}", re.DOTALL)
    if len(section.findall(text)) != 1:
        raise SystemExit(f"the page must have {begin} and {end} once")
    return section.sub(lambda _found: f"{begin}\n\n{content}\n\n{end}", text)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(
    fill: Callable[[str, Sequence[Results]], str], page: Path, description: str | None
) -> None:
    """Fill a page with the runs whose files the command line names."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--page", type=Path, default=page)
    options = parser.parse_args()
    runs = [read_results(file) for file in options.files]
    options.page.write_text(fill(options.page.read_text(), runs))


if __name__ == "__main__":
    main(fill_page, PAGE, __doc__)
