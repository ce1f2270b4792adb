"""Reports of a long run as text."""

import json
from collections.abc import Iterator, Mapping
from textwrap import indent

from tests.long_run.rounds import Difference, Report, Tally
from tests.property.generators.query_parts import PARTS

_COLUMNS = ("pairs", "refused", "with rows", "rows", "differences")


def progress_of(report: Report, elapsed_s: float) -> str:
    """Return one line: pairs by area, and differences."""
    areas = ", ".join(f"{name} {tally.pairs:,}" for name, tally in report.areas.items())
    speed = report.pairs / max(elapsed_s, 1e-9)
    return (
        f"{elapsed_s:,.0f} s: {report.pairs:,} pairs, {speed:.1f} a second, {report.rounds:,} data "
        f"sets, {len(report.differences)} differences ({areas})"
    )


def summary_of(report: Report) -> str:
    """Return the tallies as two tables, and the codes of refusals."""
    total = Tally()
    for tally in report.areas.values():
        total.add(tally)
    parts: Mapping[str, Tally] = {
        name: report.parts[name] for name in PARTS if name in report.parts
    }
    codes = (f"{count:8,}  {code}" for code, count in report.codes.most_common())
    return "\n".join(
        (
            *_table("area", {**report.areas, "all": total}),
            "",
            *_table("custom with", parts),
            "",
            "Refusals:",
            *codes,
        )
    )


def description_of(difference: Difference, store: str) -> str:
    """Return a difference with the command that repeats it."""
    lines = (
        f"DIFFERENCE in {difference.area}, query {difference.number} of its data set",
        f"  repeat with --store {store} --round {difference.round}",
        f"  body     {json.dumps(difference.body, ensure_ascii=False)}",
        f"  now      {difference.case.now_ms}, {difference.case.cutoffs}",
        f"  got      {difference.got}",
        f"  expected {difference.expected}",
    )
    return indent("\n".join(lines), "  ")


def _table(head: str, tallies: Mapping[str, Tally]) -> Iterator[str]:
    yield f"{head:<20}" + "".join(f"{name:>13}" for name in _COLUMNS) + f"{'gave rows':>13}"
    for name, tally in tallies.items():
        counts = (tally.pairs, tally.refused, tally.with_rows, tally.rows, tally.differences)
        share = tally.with_rows / max(tally.pairs, 1)
        yield f"{name:<20}" + "".join(f"{count:>13,}" for count in counts) + f"{share:>13.1%}"
