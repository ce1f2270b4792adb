"""Statements over visits, in which SQL names their columns `visit.NAME`."""

import re
from collections.abc import Sequence

from msgspec import Struct

from headrace.formats.rollup_columns import (
    POSITION_ID_BITS,
    ROLLUP,
    ROLLUP_PROJECTION,
    rollup_column,
)
from headrace.query.sql.builder import clause, statement

_NAME = re.compile(r"\bvisit\.(\w+)")
_POSITIONS = {"first_ms": "first_place", "last_ms": "last_place"}


class RollupTable(Struct, frozen=True):
    """Visits that meet `conditions`, read in the view of all columns or by the projection's names.

    To plan the view takes longer than many an answer. But the machines of a cluster read each
    other's views, and a statement that reads a projection takes its table's columns for those of
    the projection too, so it cannot read the table beside it.
    """

    conditions: Sequence[str]
    use_view: bool

    def select(
        self, columns: Sequence[str], conditions: Sequence[str], *trailing_clauses: str
    ) -> str:
        """Return a SELECT of columns where these conditions are met too, with other clauses."""
        table = ROLLUP if self.use_view else ROLLUP_PROJECTION
        sql = statement(
            clause("SELECT", ",", columns),
            f"FROM {table} AS visit",
            clause("WHERE", " AND", [*self.conditions, *conditions]),
            *trailing_clauses,
        )
        return sql if self.use_view else _read_projection(sql)


def _read_projection(sql: str) -> str:
    names = frozenset(_NAME.findall(sql))
    return _NAME.sub(lambda match: _column(match[1], names), sql)


def _column(name: str, names: frozenset[str]) -> str:
    """A place has its time, so one that is read spares the state of another figure."""
    position = _POSITIONS.get(name, "")
    if position in names:
        column = rollup_column(position, qualifier="visit.")
        return f"toInt64(bitShiftRight({column}, {POSITION_ID_BITS}))"
    return rollup_column(name, qualifier="visit.")
