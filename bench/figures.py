"""Figures as values: what was measured, beside which yardstick, and what it has to reach."""

from statistics import median

from msgspec import Struct

TIMES = "\N{MULTIPLICATION SIGN}"


class Target(Struct, frozen=True):
    """What a figure has to reach: at most `factor` times its yardstick plus `fixed`.

    `at_least` turns it round. With the factor 0 there is no yardstick in it.
    """

    factor: float = 0.0
    fixed: float = 0.0
    at_least: bool = False

    def is_met(self, figure: "Figure") -> bool:
        """Tell by the medians that the row shows."""
        bound = self.fixed + (self.factor * figure.beside if self.factor else 0.0)
        return figure.value >= bound if self.at_least else figure.value <= bound

    def words(self, figure: "Figure") -> str:
        """Write it as people do."""
        sign = "≥" if self.at_least else "≤"
        terms = [f"{self.factor:g} {TIMES} {figure.yardstick}"] if self.factor else []
        terms += [f"{shown(self.fixed)} {figure.unit}"] if self.fixed else []
        return f"{sign} {' + '.join(terms)}"


class Figure(Struct, frozen=True, kw_only=True):
    """One row of the table. The runs and the yardstick's were made in turn.

    `absent` tells why there is nothing. `remark` is what else a reader should know.
    """

    group: str
    what: str
    unit: str
    runs: tuple[float, ...] = ()
    yardstick: str = ""
    yardstick_runs: tuple[float, ...] = ()
    target: Target | None = None
    remark: str = ""
    absent: str = ""

    @property
    def value(self) -> float:
        """The median of all runs."""
        return median(self.runs)

    @property
    def beside(self) -> float:
        """The median of the yardstick's runs."""
        return median(self.yardstick_runs)

    @property
    def ratio(self) -> float | None:
        """The one median over the other, so that the row can be checked by itself."""
        return self.value / self.beside if self.yardstick_runs else None

    @property
    def verdict(self) -> str:
        """Return yes, no, or nothing where there is no target."""
        if self.target is None or self.absent:
            return ""
        return "yes" if self.target.is_met(self) else "**no**"

    def _beside(self) -> str:
        if not self.yardstick_runs:
            return ""
        return f"{self.yardstick} {with_unit(self.beside, self.unit)}"

    def cells(self) -> tuple[str, ...]:
        """Return the row as texts, in the order of `HEADINGS`."""
        target = self.target.words(self) if self.target else ""
        if self.absent:
            return (self.what, "not measured", self.yardstick, "", target, "", "0", self.absent)
        return (
            self.what,
            with_unit(self.value, self.unit),
            self._beside(),
            "" if self.ratio is None else f"{self.ratio:.2f}",
            target,
            self.verdict,
            str(len(self.runs)),
            self.remark,
        )


HEADINGS = ("What", "Headrace", "Yardstick", "Ratio", "Target", "Met", "Runs", "Remark")


def with_unit(number: float, unit: str) -> str:
    """Write a measured number with as many digits as mean something."""
    return f"{shown(number)} {unit}"


def shown(number: float) -> str:
    """Write about three digits, thousands with commas."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.3g}"
