"""The top groups of a query with buckets: which ones they are, and their rows beside all others."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from headrace.model.catalog import DATE_OUTPUT_NAME
from headrace.model.plan import OutputKind, QueryPlan
from headrace.query.sql.builder import clause, statement, subquery
from headrace.query.sql.outputs import IS_TOP

_WHEN_NULL: Mapping[OutputKind, str] = {OutputKind.NUMBER: "0", OutputKind.JSON: "''"}
"""What stands for null in the kinds of groups that may be null."""


def ranking_plan(plan: QueryPlan, top: int) -> QueryPlan:
    """Return the query whose first rows are the top groups: over the whole range, without pages.

    It has all selects: their filters decide which rows of bots count.
    """
    return replace(
        plan,
        granularity=None,
        order_by=tuple(key for key in plan.order_by if key.output_name != DATE_OUTPUT_NAME),
        limit=top - 1,  # a statement reads one row more
        offset=0,
        fill=False,
        having=(),
        compare=None,
        totals=False,
        top=None,
        others=False,
    )


def exact_key(columns: Sequence[str], kinds: Sequence[OutputKind]) -> str:
    """Return a tuple that is equal for equal groups and only for these: IN never finds a null."""
    parts: list[str] = []
    for column, kind in zip(columns, kinds, strict=True):
        if kind in _WHEN_NULL:
            parts += [f"isNull({column})", f"ifNull({column}, {_WHEN_NULL[kind]})"]
        else:
            parts.append(column)
    return f"tuple({', '.join(parts)})"


def write_page_of_top(
    rows: str, columns: Sequence[str], order: Sequence[str], first: str, last: str
) -> str:
    """Return the rows of top groups after position `first` up to `last`, then all rows of others.

    LIMIT cannot tell them apart. A row of totals is never left out.
    """
    position = f"row_number() OVER (PARTITION BY {IS_TOP} ORDER BY {', '.join(order)})"
    numbered = statement(f"SELECT *, {position} AS position", f"FROM {subquery(rows)}")
    return statement(
        clause("SELECT", ",", [*columns, IS_TOP]),
        f"FROM {subquery(numbered)}",
        f"WHERE NOT {IS_TOP} OR (position > {first} AND position <= {last})",
        f"ORDER BY {IS_TOP} DESC, position",
    )
