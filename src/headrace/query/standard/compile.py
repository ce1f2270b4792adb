"""Compile breakdowns of one table to one statement: they share the scan (ADR 33).

The text depends on the shape of the plans alone; every value is bound, the website exactly once.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from headrace.model.catalog import Operator
from headrace.model.plan import (
    CompiledQuery,
    Output,
    OutputKind,
    PlannedCondition,
    PlannedSelect,
    QueryPlan,
    single_filters,
)
from headrace.ports.store import Dialect, Rows
from headrace.query.sql.builder import Parameters, clause, statement
from headrace.query.sql.compile import compile_query, write_columns
from headrace.query.sql.conditions import write_condition
from headrace.query.sql.expressions import Expressions
from headrace.query.sql.outputs import ROW_COUNTS, list_outputs
from headrace.query.sql.sources.daily_rows import reads_daily_rows
from headrace.query.sql.sources.tables import build_source
from headrace.query.sql.sources.visible_rows import bind_visible_rows
from headrace.query.sql.time_buckets import bind_ranges
from headrace.query.standard.plan import Breakdown, StandardPlan

_NUMBER = Output("breakdown", OutputKind.NUMBER)
"""The first column of the statement: to which breakdown a row belongs, counted from 0."""


class SharedScan(NamedTuple):
    """The statement of breakdowns, and where its rows have the columns of each one's own plan.

    Without `columns` it is the statement of the only breakdown's own plan.
    """

    query: CompiledQuery
    columns: Sequence[Sequence[int]]

    def rows_of(self, number: int, rows: Rows) -> Rows:
        """Return the rows of a breakdown as the statement of its own plan returns them."""
        if not self.columns:
            return rows
        columns = self.columns[number]
        return [[row[1 + column] for column in columns] for row in rows if row[0] == number]


class StandardStatements(NamedTuple):
    """The statements of a standard query: of plans that stand alone, then of the shared scans."""

    single: Sequence[tuple[QueryPlan, CompiledQuery]]
    scans: Sequence[tuple[Sequence[Breakdown], SharedScan]]

    @property
    def queries(self) -> Sequence[CompiledQuery]:
        """All statements in order."""
        return (*(query for _, query in self.single), *(scan.query for _, scan in self.scans))


def compile_standard(plan: StandardPlan, dialect: Dialect) -> StandardStatements:
    """Return the statements of a standard query. That of `online` is the last one that is alone."""
    single = [*plan.summary, *([] if plan.online is None else [plan.online])]
    return StandardStatements(
        [(one, compile_query(one, dialect)) for one in single],
        [
            (shared, compile_breakdowns(shared, dialect))
            for of_table in plan.breakdowns.values()
            for shared in split_scans(of_table, dialect)
        ],
    )


def split_scans(
    breakdowns: Sequence[Breakdown], dialect: Dialect
) -> Sequence[tuple[Breakdown, ...]]:
    """Return the breakdowns of a table that share a scan: of the daily rollup, or of its rows."""
    of_days, of_rows = list[Breakdown](), list[Breakdown]()
    for breakdown in breakdowns:
        is_of_days = reads_daily_rows(breakdown.plan, is_distributed=dialect.is_distributed)
        (of_days if is_of_days else of_rows).append(breakdown)
    return [tuple(scan) for scan in (of_rows, of_days) if scan]


def compile_breakdowns(breakdowns: Sequence[Breakdown], dialect: Dialect) -> SharedScan:
    """Return the statement of breakdowns that share table, range and filters of the request.

    Each has the groups of its own plan, in their order, up to one more than the limit. No column
    may belong to two of them. Rows that match the filters of a breakdown must have a text in one of
    its columns: the group without one is that of all other rows.
    """
    if len(breakdowns) == 1:
        return SharedScan(compile_query(breakdowns[0].plan, dialect), ())
    plan = _join_plans(breakdowns)
    parameters = Parameters()
    visible = bind_visible_rows(plan.website_id, plan.cutoff_ms, parameters)
    ranges = bind_ranges(plan.range, plan.compare, parameters, is_bucketed=False)
    source = build_source(plan, visible, ranges, parameters, is_distributed=dialect.is_distributed)
    expressions = Expressions(parameters, dialect, source.rows)
    columns, bots = write_columns(plan, source, expressions)
    filters = [write_condition(planned, expressions) for planned in plan.filters]
    keys = _keys_of_each(breakdowns)
    for breakdown, own_keys in zip(breakdowns, keys, strict=True):
        conditions = _conditions_of_keys(breakdown, expressions)
        for key in own_keys if conditions else ():
            columns[key] = f"if({' AND '.join(conditions)}, {columns[key]}, '')"
    layouts = [
        [*own_keys, *_measures_of(breakdown.plan, plan)]
        for breakdown, own_keys in zip(breakdowns, keys, strict=True)
    ]
    limit = parameters.bind(plan.limit + 1, "UInt64")
    sql = statement(
        clause("WITH", ",", [*source.definitions, *expressions.properties.definitions]),
        clause(
            "SELECT",
            ",",
            [
                f"{_write_number(keys)} AS {_NUMBER.name}",
                *(f"{column} AS c{index}" for index, column in enumerate(columns)),
            ],
        ),
        f"FROM {source.table}",
        clause("WHERE", " AND", [*source.conditions, *bots, *filters]),
        clause("GROUP BY GROUPING SETS (", ",", [_write_names(one) for one in keys]) + "\n)",
        clause("HAVING", " AND", _having(breakdowns, keys, plan, len(columns))),
        clause("ORDER BY", ",", _order(keys, layouts)),
        f"LIMIT {limit} BY {_NUMBER.name}",
    )
    outputs = (_NUMBER, *list_outputs(plan))
    max_rows = len(breakdowns) * (plan.limit + 1)
    return SharedScan(
        CompiledQuery(sql, parameters.values, outputs, plan.website_id, max_rows), layouts
    )


def _join_plans(breakdowns: Sequence[Breakdown]) -> QueryPlan:
    """Return a plan with the columns of all breakdowns, their distinct selects, and no filter of
    their own.
    """
    first = breakdowns[0]
    selects: dict[object, PlannedSelect] = {}
    for breakdown in breakdowns:
        for select in breakdown.plan.selects:
            selects.setdefault(_identity(select), select)
    return replace(
        first.plan,
        selects=tuple(selects.values()),
        filters=first.plan.filters[len(first.own_filters) :],
        group_by=tuple(column for breakdown in breakdowns for column in breakdown.plan.group_by),
    )


def _identity(select: PlannedSelect) -> object:
    """Return what two selects have in common that differ in their aliases alone."""
    return select.column, select.aggregate, select.filters


def _keys_of_each(breakdowns: Sequence[Breakdown]) -> list[list[int]]:
    """Return where each breakdown has its group columns."""
    keys: list[list[int]] = []
    for breakdown in breakdowns:
        start = keys[-1][-1] + 1 if keys else 0
        keys.append(list(range(start, start + len(breakdown.plan.group_by))))
    return keys


def _measures_of(own: QueryPlan, joined: QueryPlan) -> list[int]:
    """Return where the columns of a plan's selects are, and those of its comparison."""
    identities = [_identity(select) for select in joined.selects]
    start, width = len(joined.group_by), len(joined.selects)
    selects = [start + identities.index(_identity(select)) for select in own.selects]
    if own.compare is None:
        return selects
    counts = range(start + 2 * width, start + 2 * width + len(ROW_COUNTS))
    return [*selects, *(select + width for select in selects), *counts]


def _conditions_of_keys(breakdown: Breakdown, expressions: Expressions) -> list[str]:
    """Return the conditions for a row to count in its group.

    That a column is set need not be tested: the group without a text is left out.
    """
    own: list[PlannedCondition] = [
        condition
        for condition in breakdown.own_filters
        if any(one.operator is not Operator.IS_SET for one in single_filters([condition]))
    ]
    return [write_condition(condition, expressions) for condition in own]


def _write_names(columns: Sequence[int]) -> str:
    return f"({', '.join(f'c{column}' for column in columns)})"


def _write_number(keys: Sequence[Sequence[int]]) -> str:
    """Return the number of the breakdown that a row is of: the one whose columns are grouped by."""
    *others, last = range(len(keys))
    terms = [f"grouping(c{keys[number][0]}) = 0, {number}" for number in others]
    return f"multiIf({', '.join([*terms, str(last)])})"


def _having(
    breakdowns: Sequence[Breakdown],
    keys: Sequence[Sequence[int]],
    plan: QueryPlan,
    width: int,
) -> list[str]:
    """Return the conditions for groups: not that of rows that match no filter of their breakdown.

    Columns that a row is not grouped by are empty.
    """
    unfiltered = [
        f"{_NUMBER.name} = {number}"
        for number, breakdown in enumerate(breakdowns)
        if not breakdown.own_filters
    ]
    has_text = [f"c{key} != ''" for own_keys in keys for key in own_keys]
    in_range = [] if plan.compare is None else [f"c{width - len(ROW_COUNTS)} > 0"]
    return [f"({' OR '.join([*unfiltered, *has_text])})", *in_range]


def _order(keys: Sequence[Sequence[int]], layouts: Sequence[Sequence[int]]) -> list[str]:
    """Return the order of each breakdown's own plan: the first select, descending, the columns."""
    firsts = [f"c{layout[len(own_keys)]}" for own_keys, layout in zip(keys, layouts, strict=True)]
    return [
        f"{_NUMBER.name} ASC",
        f"array({', '.join(firsts)})[{_NUMBER.name} + 1] DESC",
        *(f"c{key} ASC" for own_keys in keys for key in own_keys),
    ]
