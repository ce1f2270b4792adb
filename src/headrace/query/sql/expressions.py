"""Columns and aggregates as SQL, with a template for each kind of column and each aggregate."""

from collections.abc import Mapping

from headrace.model.catalog import Aggregate, Column, Kind
from headrace.model.plan import OutputKind, PlannedSelect
from headrace.ports.store import Dialect
from headrace.query.sql.builder import Parameters
from headrace.query.sql.json_properties import PropertyColumns

VALUES: Mapping[Kind, str] = {
    Kind.TEXT: "{column}",
    Kind.NUMBER: "{column} + 0",  # -0 and 0 are one value
    Kind.DATETIME: "toUnixTimestamp64Milli({column})",
    Kind.BOOLEAN: "{column}",
    Kind.IDENTIFIER: "lower(hex({column}))",
    Kind.JSON: "{column}",
}

OUTPUT_KINDS: Mapping[Kind, OutputKind] = {
    Kind.TEXT: OutputKind.TEXT,
    Kind.NUMBER: OutputKind.NUMBER,
    Kind.DATETIME: OutputKind.DATETIME,
    Kind.BOOLEAN: OutputKind.BOOLEAN,
    Kind.IDENTIFIER: OutputKind.TEXT,
    Kind.JSON: OutputKind.JSON,
}

DISTINCT_VALUES: Mapping[Kind, str] = {
    Kind.TEXT: "uniqExactIf({column}, {column} != '')",
    Kind.NUMBER: "uniqExact({column} + 0)",
    Kind.DATETIME: "uniqExact({column})",
    Kind.BOOLEAN: "uniqExact({column})",
    Kind.IDENTIFIER: "uniqExact({column})",
    Kind.JSON: "uniqExactIf({column}, {column} != '\"\"')",
}

# Kahan summation: plain sums differ in the last digits with the order in which threads finish.
# A result that overflows a double is null, because JSON has no infinity.
NUMBER_AGGREGATES: Mapping[Aggregate, str] = {
    Aggregate.SUM: "ifNotFinite(ifNull(sumKahan({number}), 0), NULL)",
    Aggregate.AVG: "ifNotFinite(sumKahan({number}) / count({number}), NULL)",
    Aggregate.MAX: "max({number})",
    Aggregate.MIN: "min({number})",
    Aggregate.P50: "ifNotFinite(quantileExactInclusive(0.5)({number}), NULL)",
    Aggregate.P75: "ifNotFinite(quantileExactInclusive(0.75)({number}), NULL)",
    Aggregate.P90: "ifNotFinite(quantileExactInclusive(0.9)({number}), NULL)",
    Aggregate.P95: "ifNotFinite(quantileExactInclusive(0.95)({number}), NULL)",
    Aggregate.P99: "ifNotFinite(quantileExactInclusive(0.99)({number}), NULL)",
}


class Expressions:
    """The SQL of one statement's columns; properties bind their keys to `parameters`."""

    def __init__(self, parameters: Parameters, dialect: Dialect) -> None:
        self.parameters = parameters
        self.properties = PropertyColumns(parameters, dialect)

    def name(self, column: Column) -> str:
        """Return the SQL name of a column in the statement."""
        if column.kind is Kind.JSON:
            return self.properties.value(column)
        return column.name

    def number(self, column: Column) -> str:
        """Return the SQL name of a column's number, NULL for values that are not numbers."""
        if column.kind is Kind.JSON:
            return self.properties.number(column)
        return column.name

    def value(self, column: Column) -> str:
        """Return the SQL of a column's value as the store returns it, equal for equal values."""
        return VALUES[column.kind].format(column=self.name(column))

    def aggregate(self, select: PlannedSelect) -> str:
        """Return the SQL of a select's aggregate."""
        column = select.column
        if column is None or select.aggregate is Aggregate.COUNT:
            return "count()"
        if select.aggregate is Aggregate.UNIQ:
            return DISTINCT_VALUES[column.kind].format(column=self.name(column))
        if select.aggregate is Aggregate.SUM and column.kind is Kind.JSON:
            return NUMBER_AGGREGATES[Aggregate.SUM].format(
                number=self.properties.sum_operand(column)
            )
        return NUMBER_AGGREGATES[select.aggregate].format(number=self.number(column))
