"""SELECT statements over daily rollups.

An expression is a template that names rollup columns in braces, so a statement is rendered once,
when all of its expressions are known.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import Formatter
from types import MappingProxyType

from msgspec import Struct

from headrace.formats.rollup_columns import (
    POSITION_ID_BITS,
    ROLLUP,
    ROLLUP_PROJECTION,
    rollup_column,
)
from headrace.query.sql.builder import clause, statement

_ALIAS = "visit"
_POSITIONS = {"first_ms": "first_place", "last_ms": "last_place"}
_NO_ARGUMENTS: Mapping[str, str] = MappingProxyType({})


class RollupExpression(Struct, frozen=True):
    """SQL over rollup columns, such as `max({last_ms} >= {start})`.

    `arguments` is the SQL of the names in braces that are not columns: placeholders of bound
    values, subqueries.
    """

    template: str
    arguments: Mapping[str, str] = _NO_ARGUMENTS

    def columns(self) -> frozenset[str]:
        """Return the names of the rollup columns that the template names."""
        return _template_names(self.template) - self.arguments.keys()

    def render(self, columns: Mapping[str, str]) -> str:
        """Return the SQL; `columns` maps the name of each rollup column to its SQL."""
        return self.template.format_map({**columns, **self.arguments})


class RollupTable(Struct, frozen=True):
    """The daily rollups that meet `conditions`.

    They are read from the projection, or from the view of it. Planning the view takes longer than
    many a query takes in all. The view is needed in two cases: the machines of a cluster can read
    only each other's views, and a statement that reads a projection resolves its table's columns
    to those of the projection, so it cannot read the table too.
    """

    conditions: Sequence[RollupExpression]
    use_view: bool

    def select(
        self,
        columns: Sequence[RollupExpression],
        conditions: Sequence[RollupExpression],
        *trailing_clauses: RollupExpression,
    ) -> str:
        """Return the SELECT of columns that meet these conditions too, with trailing clauses."""
        conditions = [*self.conditions, *conditions]
        names = self._column_sql([*columns, *conditions, *trailing_clauses])
        return statement(
            clause("SELECT", ",", [column.render(names) for column in columns]),
            f"FROM {ROLLUP if self.use_view else ROLLUP_PROJECTION} AS {_ALIAS}",
            clause("WHERE", " AND", [condition.render(names) for condition in conditions]),
            *(trailing.render(names) for trailing in trailing_clauses),
        )

    def _column_sql(self, expressions: Sequence[RollupExpression]) -> Mapping[str, str]:
        """Return the SQL of each column that the expressions name."""
        names = frozenset[str]().union(*(expression.columns() for expression in expressions))
        if self.use_view:
            return {name: f"{_ALIAS}.{name}" for name in names}
        return {name: _projection_column(name, names) for name in names}


@lru_cache(maxsize=1024)  # templates are made of column names, so there are few hundred
def _template_names(template: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name is not None)


def _projection_column(name: str, names: frozenset[str]) -> str:
    """Return a column of the projection.

    A position includes its timestamp. A statement that reads the position takes the timestamp from
    it and does not read another aggregate state.
    """
    position = _POSITIONS.get(name, "")
    if position in names:
        column = rollup_column(position, qualifier=f"{_ALIAS}.")
        return f"toInt64(bitShiftRight({column}, {POSITION_ID_BITS}))"
    return rollup_column(name, qualifier=f"{_ALIAS}.")
