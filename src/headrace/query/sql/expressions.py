"""Columns and their aggregates as SQL, with a template for each kind of column."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from headrace.model.catalog import Aggregate, Column, Kind
from headrace.model.plan import OutputKind, PlannedCondition, PlannedSelect
from headrace.ports.store import Dialect
from headrace.query.sql.aggregates import (
    COLUMN_AGGREGATES,
    COUNTED_ROWS,
    DISTINCT_KEYS,
    DISTINCT_VALUES,
    ROWS,
    Form,
)
from headrace.query.sql.builder import Parameters
from headrace.query.sql.json_properties import PropertyColumns
from headrace.query.sql.sources.daily_rows import EVENT_COUNT, PAGE_VIEWS, is_page_view_filter

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


class RowForm(Struct, frozen=True):
    """What the rows of a statement have beside the columns of their table.

    `id_keys` has the columns with the keys of ids, by the column of the ids. Rows that are
    `aggregated` are those of `daily_rows`: each stands for several events.
    """

    id_keys: Mapping[str, str] = {}
    is_aggregated: bool = False


PLAIN_ROWS = RowForm()


class Expressions:
    """The SQL of one statement's columns; properties bind their keys to `parameters`."""

    def __init__(
        self, parameters: Parameters, dialect: Dialect, rows: RowForm = PLAIN_ROWS
    ) -> None:
        self.parameters = parameters
        self._rows = rows
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

    def aggregate(self, select: PlannedSelect, conditions: Sequence[str] = ()) -> str:
        """Return the SQL of a select's aggregate over the rows that match the conditions."""
        form, column = self.form(select)
        return form.write(conditions, column)

    def form(self, select: PlannedSelect) -> tuple[Form, str]:
        """Return the form of a select's aggregate, and the SQL name of what it aggregates."""
        column = select.column
        if column is None or select.aggregate is Aggregate.COUNT:
            return self._form_of_count(select)
        if select.aggregate is Aggregate.UNIQ:
            key = self._rows.id_keys.get(column.name)
            return (
                (DISTINCT_VALUES[column.kind], self.name(column))
                if key is None
                else (DISTINCT_KEYS, key)
            )
        if select.aggregate is Aggregate.SUM and column.kind is Kind.JSON:
            return COLUMN_AGGREGATES[Aggregate.SUM], self.properties.sum_operand(column)
        return COLUMN_AGGREGATES[select.aggregate], self.number(column)

    def own_filters(self, select: PlannedSelect) -> tuple[PlannedCondition, ...]:
        """Return the conditions of a select that its form does not include."""
        if self._rows.is_aggregated and select.aggregate is Aggregate.COUNT:
            return tuple(one for one in select.filters if not is_page_view_filter(one))
        return select.filters

    def _form_of_count(self, select: PlannedSelect) -> tuple[Form, str]:
        if not self._rows.is_aggregated:
            return ROWS, ""
        is_of_page_views = any(map(is_page_view_filter, select.filters))
        return COUNTED_ROWS, PAGE_VIEWS if is_of_page_views else EVENT_COUNT
