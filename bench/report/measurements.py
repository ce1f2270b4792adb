"""Measurements as values: runs, baseline and threshold."""

from statistics import median

from msgspec import Struct

TIMES = "\N{MULTIPLICATION SIGN}"


class Threshold(Struct, frozen=True):
    """The threshold of a measurement: at most `factor` times its baseline plus `fixed`.

    `at_least` reverses the comparison. With a factor of 0 the baseline is not used.
    """

    factor: float = 0.0
    fixed: float = 0.0
    at_least: bool = False

    def is_met(self, measurement: "Measurement") -> bool:
        """Return whether the medians shown in the row meet the threshold."""
        bound = self.fixed + (self.factor * measurement.baseline_value if self.factor else 0.0)
        return measurement.value >= bound if self.at_least else measurement.value <= bound

    def describe(self, measurement: "Measurement") -> str:
        """Return the threshold as readable text."""
        sign = "≥" if self.at_least else "≤"
        terms = [f"{self.factor:g} {TIMES} {measurement.baseline}"] if self.factor else []
        terms += [f"{format_number(self.fixed)} {measurement.unit}"] if self.fixed else []
        return f"{sign} {' + '.join(terms)}"


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

    `skip_reason` explains a missing measurement. `remark` is additional text for readers.
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

    @property
    def value(self) -> float:
        """The median of all runs."""
        return median(self.runs)

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

    def _baseline_cell(self) -> str:
        if not self.baseline_runs:
            return ""
        return f"{self.baseline} {format_with_unit(self.baseline_value, self.unit)}"

    def cells(self) -> tuple[str, ...]:
        """Return the row as texts, in the order of `HEADINGS`."""
        threshold = self.threshold.describe(self) if self.threshold else ""
        if self.skip_reason:
            return (
                self.title,
                "not measured",
                self.baseline,
                "",
                threshold,
                "",
                "0",
                self.skip_reason,
            )
        return (
            self.title,
            format_with_unit(self.value, self.unit),
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


def format_number(number: float) -> str:
    """Format a number with about three significant digits, and commas between thousands."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"
