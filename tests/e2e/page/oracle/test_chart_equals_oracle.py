"""The lines that the browser draws on the canvas of the overview are those of the oracle."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import pytest

from tests.e2e.page.oracle.drawn_chart import DrawnChart, Point, drawn_chart, recorded_drawing
from tests.e2e.page.oracle.known_page import DAYS, GERMANY, MARKS, KnownPage, Row
from tests.oracle.standard import evaluate_standard

pytestmark = MARKS

SOLID: Final = ()
BEFORE: Final = (5, 5)
"""How the line of the range is drawn, and that of the range before it."""


def _seconds(label: str) -> float:
    units = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+) ?(ms|\w)", label))


METRICS: Final[dict[str, Callable[[str], float]]] = {
    "visitors": float,
    "pageViews": float,
    "sessions": float,
    "bounceRate": lambda label: float(label.removesuffix("%")) / 100,
    "medianDuration": _seconds,
}
"""Each metric, and what a label of its axis means."""

PERIODS: Final[tuple[tuple[str, dict[str, str], Row], ...]] = (
    ("days", {}, {"granularity": "daily", "compare": "previous_period"}),
    (
        "hours of a day",
        {"from": "2025-10-28", "to": "2025-10-28"},
        {
            "startDate": "2025-10-28",
            "endDate": "2025-10-28",
            "granularity": "hourly",
            "compare": "previous_period",
        },
    ),
    (
        "weeks of one country, alone",
        {
            "granularity": "weekly",
            "compare": "none",
            "from": "2025-10-06",
            "filters": json.dumps([GERMANY]),
        },
        {"granularity": "weekly", "startDate": "2025-10-06", "filters": [GERMANY]},
    ),
)


@pytest.mark.parametrize(
    ("parameters", "body"),
    [period[1:] for period in PERIODS],
    ids=[period[0] for period in PERIODS],
)
def test_lines_on_the_canvas_are_those_of_the_oracle(
    known: KnownPage, parameters: dict[str, str], body: Row
) -> None:
    rows: list[Row] = evaluate_standard(
        {**DAYS, **body, "types": ["timeseries"]}, lambda custom: known.answer({**custom}).rows, 0
    )["timeseries"]
    is_compared = "compare" in body

    with recorded_drawing(known.page):
        for metric, value_of in METRICS.items():
            known.open("/", metric="" if metric == "visitors" else metric, **parameters)
            chart = drawn_chart(known.page, 2025, value_of)

            assert chart.cut == []
            before_rows: list[Row] = [row.get("previous") or {} for row in rows]
            before = [row.get(metric) for row in before_rows]
            assert set(chart.lines) == {SOLID, *([BEFORE] if is_compared else [])}
            _check_line(chart, SOLID, _points(rows, [row[metric] for row in rows]))
            if is_compared:
                _check_line(chart, BEFORE, _points(rows, before))
    assert known.page.problems() == []


def _points(rows: list[Row], values: Sequence[float | None]) -> list[Point]:
    """Return the points of a line; where it has no value, the line has a gap."""
    return [
        (datetime.fromisoformat(row["date"]).replace(tzinfo=UTC), value)
        for row, value in zip(rows, values, strict=True)
        if value is not None
    ]


def _check_line(chart: DrawnChart, dash: tuple[float, ...], expected: list[Point]) -> None:
    """Compare a line with points, to two pixels: positions of labels and points are rounded."""
    line = chart.lines[dash]
    seconds = [
        (at - time).total_seconds() for (at, _), (time, _) in zip(line, expected, strict=True)
    ]
    differences = [at - value for (_, at), (_, value) in zip(line, expected, strict=True)]
    assert max(map(abs, seconds)) <= 2 * chart.second_px
    assert max(map(abs, differences)) <= 2 * chart.value_px
