"""Statements over visits, in which SQL names their columns `visit.NAME`."""

import re
from collections.abc import Sequence

from msgspec import Struct

from headrace.formats.rollup_columns import PLACE_BITS, VISITS, VISITS_PROJECTION, visit_column
from headrace.query.sql.builder import clause, statement

_NAME = re.compile(r"\bvisit\.(\w+)")
_PLACES = {"first_ms": "first_place", "last_ms": "last_place"}


class Visits(Struct, frozen=True):
    """Visits that meet `conditions`, read in the view of all columns or by the projection's names.

    To plan the view takes longer than many an answer. But the machines of a cluster read each
    other's views, and a statement that reads a projection takes its table's columns for those of
    the projection too, so it cannot read the table beside it.
    """

    conditions: Sequence[str]
    in_view: bool

    def select(self, columns: Sequence[str], conditions: Sequence[str], *others: str) -> str:
        """Return a SELECT of columns where these conditions are met too, with other clauses."""
        table = VISITS if self.in_view else VISITS_PROJECTION
        named = statement(
            clause("SELECT", ",", columns),
            f"FROM {table} AS visit",
            clause("WHERE", " AND", [*self.conditions, *conditions]),
            *others,
        )
        return named if self.in_view else _read_projection(named)


def _read_projection(named: str) -> str:
    names = frozenset(_NAME.findall(named))
    return _NAME.sub(lambda found: _column(found[1], names), named)


def _column(name: str, names: frozenset[str]) -> str:
    """A place has its time, so one that is read spares the state of another figure."""
    place = _PLACES.get(name, "")
    if place in names:
        return f"toInt64(bitShiftRight({visit_column(place, of='visit.')}, {PLACE_BITS}))"
    return visit_column(name, of="visit.")
