"""Writes the tables of a results file into the page on performance.

Run: .venv/bin/python -m bench.report.page bench/results/FILE.json [FILE.json ...]

Several files are parts of one benchmark that were measured separately (`--only`, `--json`). The
groups of a later file replace those of the files before it.
"""

import argparse
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from msgspec.structs import replace

from bench.report.growth import growth_lines
from bench.report.measurements import HEADINGS
from bench.report.results import Results, read_results
from bench.report.sizing import sizing_lines

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"

_WIDTH = 100
"""Of prose in the documents."""


def measurement_lines(results: Results) -> Iterator[str]:
    """Return the lines of a run: its machine, and a table for each group.

    Measurements over several sizes have tables of their own.
    """
    yield _run_line(results)
    unsized = [measurement for measurement in results.measurements if not measurement.events]
    for group, members in groupby(unsized, lambda measurement: measurement.group):
        yield from ("", f"**{group[:1].upper()}{group[1:]}**", "")
        yield _row(HEADINGS)
        yield f"|{'---|' * len(HEADINGS)}"
        yield from (_row(measurement.cells()) for measurement in members)


def _growth_lines(results: Results) -> Iterator[str]:
    yield _run_line(results)
    yield from growth_lines(results.measurements)


def _run_line(results: Results) -> str:
    line = f"{results.date[:10]}, commit `{results.commit}`. {results.machine.line()}."
    return textwrap.fill(line, _WIDTH)


def fill_page(text: str, runs: Sequence[Results]) -> str:
    """Return a page with its tables replaced; they are between markers in comments.

    Tables for which the runs have no measurements stay as they are.
    """
    unsized = _without_replaced_groups(runs)
    sized = _joined_by_commit(run for run in runs if any(one.events for one in run.measurements))
    if unsized:
        measurements = [measurement for run in unsized for measurement in run.measurements]
        text = fill_section(text, "figures", _join(map(measurement_lines, unsized)))
        text = fill_section(text, "sizing", "\n".join(sizing_lines(measurements)))
    if sized:
        text = fill_section(text, "growth", _join(map(_growth_lines, sized)))
    return text


def _joined_by_commit(runs: Iterable[Results]) -> list[Results]:
    """Return the runs, those of one commit as one run: sizes and steps that were measured apart."""
    joined: dict[str, Results] = {}
    for run in runs:
        before = joined.get(run.commit)
        measurements = (*(before.measurements if before else ()), *run.measurements)
        joined[run.commit] = replace(before or run, measurements=measurements)
    return list(joined.values())


def _without_replaced_groups(runs: Sequence[Results]) -> list[Results]:
    """Return the measurements of one size only, each group from the last run that has it."""
    last = {
        one.group: number
        for number, run in enumerate(runs)
        for one in run.measurements
        if not one.events
    }
    kept = [
        replace(
            run,
            measurements=tuple(
                one for one in run.measurements if not one.events and last[one.group] == number
            ),
        )
        for number, run in enumerate(runs)
    ]
    return [run for run in kept if run.measurements]


def _join(blocks: Iterable[Iterator[str]]) -> str:
    return "\n\n".join("\n".join(lines) for lines in blocks)


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
