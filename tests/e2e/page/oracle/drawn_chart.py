"""What a browser draws of a chart over time: its lines, read back by the labels of its axes."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, NamedTuple

from testing.browsers.page import Page

_RECORD: Final = """(() => {
  const before = (owner, name, record) => {
    const original = owner[name];
    owner[name] = function (...all) {
      record(this, ...all);
      return original.apply(this, all);
    };
  };
  for (const name of ["moveTo", "lineTo"]) {
    before(Path2D.prototype, name, (path, x, y) => (path.points ??= []).push([x, y]));
  }
  const context = CanvasRenderingContext2D.prototype;
  before(context, "clearRect", ({canvas}) => { canvas.drawn = {lines: [], labels: [], cut: []}; });
  before(context, "stroke", (own, path) => path?.points && own.canvas.drawn.lines.push(
    {points: path.points, dash: own.getLineDash().map((length) => length / devicePixelRatio)}));
  before(context, "fillText", (own, text, x, y) => {
    const {canvas, textAlign} = own;
    canvas.drawn.labels.push([textAlign, text, x, y]);
    if (textAlign === "center" && x + own.measureText(text).width / 2 > canvas.width) {
      canvas.drawn.cut.push(text);
    }
  });
})();"""
"""Notes what is drawn on each canvas since it was cleared last: lines and labels, in pixels."""

_DRAWN: Final = """((canvas) => canvas?.drawn?.lines.length && canvas.drawn)(
  document.querySelector('.lead .chart canvas'))"""
_SCALE: Final = 4.0
"""Pixels of the screen for each one of the window, so that a line is read more exactly."""

Value = Callable[[str], float]
Point = tuple[datetime, float]


class DrawnChart(NamedTuple):
    """The lines of a chart by their dashes, `()` for a solid one; times are read as UTC."""

    lines: dict[tuple[float, ...], list[Point]]
    second_px: float
    value_px: float
    """How far a pixel is: in seconds, and in units of the value."""
    cut: list[str]
    """Labels below the chart that do not fit on its canvas."""


@contextmanager
def recorded_drawing(page: Page) -> Generator[None]:
    """Record what pages draw that are opened within this block."""
    command = page.tab.command
    script = command("Page.addScriptToEvaluateOnNewDocument", source=_RECORD)["identifier"]
    page.set_width(1280, scale=_SCALE)
    try:
        yield
    finally:
        command("Emulation.clearDeviceMetricsOverride")
        command("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def drawn_chart(page: Page, year: int, value_of: Value) -> DrawnChart:
    """Read the first chart of a view; `value_of` reads a label beside it, `year` is its first."""
    drawn: dict[str, Any] = page.until(_DRAWN)
    labels: list[tuple[str, str, float, float]] = drawn["labels"]
    values = [(y, value_of(text)) for align, text, _, y in labels if align == "right"]
    below = [(x, text) for align, text, x, _ in labels if align == "center"]
    times = _times(sorted(below, key=lambda label: label[0]), year)
    second_at, second_px = _scale([(x, time.timestamp()) for x, time in times])
    value_at, value_px = _scale(values)
    lines = {
        tuple(line["dash"]): [
            (datetime.fromtimestamp(second_at(x), UTC), value_at(y)) for x, y in line["points"]
        ]
        for line in drawn["lines"]
    }
    assert len(lines) == len(drawn["lines"])
    return DrawnChart(lines, second_px, value_px, drawn["cut"])


def _times(labels: list[tuple[float, str]], year: int) -> list[tuple[float, datetime]]:
    """Return the times of labels: `27 Oct`, or `04:00` with the day below it where one begins."""
    times: list[tuple[float, datetime]] = []
    day = ""
    for x, rows in groupby(labels, key=lambda label: label[0]):
        texts = [text for _, text in rows]
        day = next((text for text in texts if " " in text), day)
        clock = next((text for text in texts if ":" in text), "00:00")
        time = datetime.strptime(f"{day} {year} {clock}", "%d %b %Y %H:%M").replace(tzinfo=UTC)
        times.append((x, time))
    return times


def _scale(known: list[tuple[float, float]]) -> tuple[Callable[[float], float], float]:
    """Return what a position means, and how far a pixel is, by the labels furthest apart."""
    (first_px, first), (last_px, last) = min(known), max(known)
    per_pixel = (last - first) / (last_px - first_px)
    return lambda pixel: first + (pixel - first_px) * per_pixel, abs(per_pixel)
