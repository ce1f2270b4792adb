"""Aggregates as SQL: what each is made of, over all rows or over those that match conditions."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.formats.id_keys import NO_KEY
from headrace.model.catalog import VITAL_THRESHOLDS, Aggregate, Kind


class Part(NamedTuple):
    """One aggregate function of the engine over the rows that match `condition`, if it has one."""

    function: str
    argument: str = ""
    condition: str = ""
    parameters: str = ""

    def write(self, conditions: Sequence[str], column: str) -> str:
        """Return the call over the rows that match these conditions too."""
        own = [self.condition.format(column=column)] if self.condition else []
        joined = " AND ".join([*own, *conditions])
        arguments = [self.argument.format(column=column), joined]
        suffix = "If" if joined else ""
        listed = ", ".join(argument for argument in arguments if argument)
        return f"{self.function}{suffix}{self.parameters}({listed})"


class Form(NamedTuple):
    """An aggregate: its parts, and a template of its result in which `{0}` is the first part."""

    parts: tuple[Part, ...]
    result: str = "{0}"

    def write(self, conditions: Sequence[str], column: str) -> str:
        """Return the result over the rows of a column that match the conditions."""
        return self.result.format(*(part.write(conditions, column) for part in self.parts))


ROWS = Form((Part("count"),))

COUNTED_ROWS = Form((Part("sum", "{column}"),))
"""Rows that have been counted: the column has how many each row stands for."""

DISTINCT_VALUES: Mapping[Kind, Form] = {
    Kind.TEXT: Form((Part("uniqExact", "{column}", "{column} != ''"),)),
    Kind.NUMBER: Form((Part("uniqExact", "{column} + 0"),)),
    Kind.DATETIME: Form((Part("uniqExact", "{column}"),)),
    Kind.BOOLEAN: Form((Part("uniqExact", "{column}"),)),
    Kind.IDENTIFIER: Form((Part("uniqExact", "{column}"),)),
    Kind.JSON: Form((Part("uniqExact", "{column}", "{column} != '\"\"'"),)),
}

DISTINCT_KEYS = Form((Part("uniqExact", "{column}", f"{{column}} != {NO_KEY}"),))
"""Distinct ids, counted by their keys."""

_FINITE = "ifNotFinite({0}, NULL)"


def _percentile(level: str) -> Form:
    return Form((Part("quantileExactInclusive", "{column}", parameters=f"({level})"),), _FINITE)


# Kahan summation: plain sums differ in the last digits with the order in which threads finish.
# A result that overflows a double is null, because JSON has no infinity.
NUMBER_AGGREGATES: Mapping[Aggregate, Form] = {
    Aggregate.SUM: Form((Part("sumKahan", "{column}"),), "ifNotFinite(ifNull({0}, 0), NULL)"),
    Aggregate.AVG: Form(
        (Part("sumKahan", "{column}"), Part("count", "{column}")), "ifNotFinite({0} / {1}, NULL)"
    ),
    Aggregate.MAX: Form((Part("max", "{column}"),), _FINITE),
    Aggregate.MIN: Form((Part("min", "{column}"),), _FINITE),
    Aggregate.P50: _percentile("0.5"),
    Aggregate.P75: _percentile("0.75"),
    Aggregate.P90: _percentile("0.9"),
    Aggregate.P95: _percentile("0.95"),
    Aggregate.P99: _percentile("0.99"),
}

DATETIME_AGGREGATES: Mapping[Aggregate, Form] = {
    Aggregate.EARLIEST: Form((Part("min", "toNullable(toUnixTimestamp64Milli({column}))"),)),
    Aggregate.LATEST: Form((Part("max", "toNullable(toUnixTimestamp64Milli({column}))"),)),
}

_RATED = f"metric_name IN {tuple(VITAL_THRESHOLDS)}"
_GOOD, _POOR = (
    f"transform(metric_name, {list(VITAL_THRESHOLDS)}, {list(map(float, limits))}, 0.)"
    for limits in zip(*VITAL_THRESHOLDS.values(), strict=True)
)


def _share(of: str) -> Form:
    parts = (
        Part("count", condition=f"{_RATED} AND ifNull({of}, false)"),
        Part("count", condition=f"{_RATED} AND isNotNull({{column}})"),
    )
    return Form(parts, "ifNotFinite({0} / {1}, NULL)")


SHARE_AGGREGATES: Mapping[Aggregate, Form] = {
    Aggregate.GOOD_SHARE: _share(f"{{column}} <= {_GOOD}"),
    Aggregate.NEEDS_IMPROVEMENT_SHARE: _share(f"{{column}} > {_GOOD} AND {{column}} <= {_POOR}"),
    Aggregate.POOR_SHARE: _share(f"{{column}} > {_POOR}"),
}

COLUMN_AGGREGATES: Mapping[Aggregate, Form] = {
    **NUMBER_AGGREGATES,
    **DATETIME_AGGREGATES,
    **SHARE_AGGREGATES,
}
"""The aggregates that take a column of one kind."""
