"""Measurements as values: runs, baseline and threshold."""

import math
from statistics import median

from msgspec import Struct

TIMES = "\N{MULTIPLICATION SIGN}"


class Threshold(Struct, frozen=True):
    """The threshold of a measurement: at most `factor` times its baseline plus `fixed`.

    `at_least` reverses the comparison. With a factor of 0 the baseline is not used. With `of_p95`
    it is a threshold of the 95th percentile of the runs, not of their median.
    """

    factor: float = 0.0
    fixed: float = 0.0
    at_least: bool = False
    of_p95: bool = False

    def is_met(self, measurement: "Measurement") -> bool:
        """Return whether the medians shown in the row meet the threshold."""
        bound = self.fixed + (self.factor * measurement.baseline_value if self.factor else 0.0)
        value = measurement.p95 if self.of_p95 else measurement.value
        return value >= bound if self.at_least else value <= bound

    def describe(self, measurement: "Measurement") -> str:
        """Return the threshold as readable text."""
        sign = "≥" if self.at_least else "≤"
        terms = [f"{self.factor:g} {TIMES} {measurement.baseline}"] if self.factor else []
        terms += [f"{format_number(self.fixed)} {measurement.unit}"] if self.fixed else []
        return f"{'p95 ' if self.of_p95 else ''}{sign} {' + '.join(terms)}"


_RUNS_FOR_P95 = 20

_JSON_NAMES = {
    "title": "what",
    "baseline": "yardstick",
    "baseline_runs": "yardstick_runs",
    "threshold": "target",
    "skip_reason": "absent",
}
"""Field names in the stored results."""


class Measurement(Struct, frozen=True, kw_only=True, rename=_JSON_NAMES):
    """One row of the table. Its runs and those of the baseline were made in turn.

    `skip_reason` explains a missing measurement. `remark` is additional text for readers. `events`
    is the number of stored events where a row is measured over data sets of several sizes, else 0.
    """

    group: str
    title: str
    unit: str
    runs: tuple[float, ...] = ()
    baseline: str = ""
    baseline_runs: tuple[float, ...] = ()
    threshold: Threshold | None = None
    remark: str = ""
    skip_reason: str = ""
    events: int = 0

    @property
    def value(self) -> float:
        """The median of all runs."""
        return median(self.runs)

    @property
    def p95(self) -> float:
        """The smallest of the runs that 95 % of them do not exceed."""
        return sorted(self.runs)[math.ceil(len(self.runs) * 0.95) - 1]

    @property
    def baseline_value(self) -> float:
        """The median of the baseline's runs."""
        return median(self.baseline_runs)

    @property
    def ratio(self) -> float | None:
        """The ratio of the two medians, so that a reader can check the row by itself."""
        return self.value / self.baseline_value if self.baseline_runs else None

    @property
    def verdict(self) -> str:
        """Return yes or no, or an empty string without a threshold."""
        if self.threshold is None or self.skip_reason:
            return ""
        return "yes" if self.threshold.is_met(self) else "**no**"

    def value_cell(self) -> str:
        """Return the median, and the 95th percentile where it is judged or of many runs."""
        is_judged = self.threshold is not None and self.threshold.of_p95
        p95 = (
            f", p95 {format_number(self.p95)}"
            if is_judged or (self.events and len(self.runs) >= _RUNS_FOR_P95)
            else ""
        )
        return f"{format_with_unit(self.value, self.unit)}{p95}"

    def _baseline_cell(self) -> str:
        if not self.baseline_runs:
            return ""
        return f"{self.baseline} {format_with_unit(self.baseline_value, self.unit)}"

    def cells(self) -> tuple[str, ...]:
        """Return the row as texts, in the order of `HEADINGS`."""
        threshold = self.threshold.describe(self) if self.threshold else ""
        title = f"{self.title}, {format_events(self.events)}" if self.events else self.title
        if self.skip_reason:
            return (
                title,
                "not measured",
                self.baseline,
                "",
                threshold,
                "",
                "0",
                self.skip_reason,
            )
        return (
            title,
            self.value_cell(),
            self._baseline_cell(),
            "" if self.ratio is None else f"{self.ratio:.2f}",
            threshold,
            self.verdict,
            str(len(self.runs)),
            self.remark,
        )


HEADINGS = ("What", "Headrace", "Yardstick", "Ratio", "Target", "Met", "Runs", "Remark")


def format_with_unit(number: float, unit: str) -> str:
    """Format a measured number with its significant digits."""
    return f"{format_number(number)} {unit}"


def format_events(events: int) -> str:
    """Format a number of stored events in millions."""
    return f"{events / 1e6:g} M events"


def format_number(number: float) -> str:
    """Format a number with about three significant digits, and commas between thousands."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"
