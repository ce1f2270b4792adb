"""Compile a funnel to one statement with bound parameters (ADR 30).

The text depends on the shape of the plan alone: the number of steps, what custom queries depend on
within each, and the columns. Every value is bound, the website exactly once.
"""

from headrace.model.catalog import QUERY_LIMITS
from headrace.model.plan import CompiledQuery, Direction, Output, OutputKind
from headrace.ports.store import Dialect
from headrace.query.funnel.plan import FunnelPlan
from headrace.query.sql.builder import Parameters, clause, select_from, statement, subquery
from headrace.query.sql.expressions import OUTPUT_KINDS, Expressions
from headrace.query.sql.order_by import OrderKey, write_order
from headrace.query.sql.paths import select_paths, step_bits, step_condition
from headrace.query.sql.sources.visible_rows import bind_visible_rows
from headrace.query.sql.time_buckets import bind_range

# One pass over the events of an id for each step. `starts` has for each event the start of the
# latest attempt that reaches the step with it, 0 where none does. The latest one is enough: an
# earlier start is dropped before it. Starts grow with time, so the last one before an event is the
# latest before it. `completions` has when each step was reached first, 0 for never.
_COMPLETIONS = """tupleElement(arrayFold(
    (reached, step) -> (
        arrayMap(
            (time, bits, start) -> if(
                bitTest(bits, step) AND start != 0 AND start + {window} >= time, start, 0
            ),
            times,
            steps,
            arrayPushFront(
                arrayPopBack(arrayFill(start -> start != 0, reached.1)), toInt64(0)
            )
        ),
        arrayPushBack(reached.2, arrayFirst((time, start) -> start != 0, times, reached.1))
    ),
    range(1, {end}),
    (
        arrayMap((time, bits) -> if(bitTest(bits, 0), time, 0), times, steps),
        emptyArrayInt64()
    )
), 2) AS completions"""

# The attempt that counts: of those that reach the last reached step the one that began first. It
# ends with the first event that completes this step, and began with the first possible event at
# most a window before. From there each step is the earliest event after that of the step before.
_POSITIONS = """arrayFold(
    (positions, step) -> arrayPushBack(
        positions,
        arrayFirstIndex(
            (bits, position) -> bitTest(bits, step) AND position > positions[-1],
            steps,
            arrayEnumerate(steps)
        )
    ),
    range(1, arrayCount(time -> time != 0, completions)),
    [arrayFirstIndex(
        (time, bits) -> bitTest(bits, 0)
            AND time + {window} >= completions[arrayCount(time -> time != 0, completions)],
        times,
        steps
    )]
) AS positions"""

_ELAPSED = """arrayMap(
    position -> times[position] - times[positions[1]],
    positions
) AS elapsed"""


def compile_funnel(plan: FunnelPlan, dialect: Dialect) -> CompiledQuery:
    """Return the statement of a plan in a store's dialect.

    Its columns are the group, if there is one, and for each step how many reached it and the median
    of the milliseconds from the first step. Steps that nobody reached may be missing at the end.
    It reads one group more than a result has.
    """
    parameters = Parameters()
    visible = bind_visible_rows(plan.website_id, plan.cutoff_ms, parameters)
    range_parameters = bind_range(plan.range, parameters, is_bucketed=False)
    window = parameters.bind(plan.window_ms, "Int64")
    expressions = Expressions(parameters, dialect)
    value = None if plan.group_by is None else expressions.value(plan.group_by)
    paths = select_paths(
        by=plan.by,
        visible=visible,
        range_parameters=range_parameters,
        bits=step_bits([step_condition(step.filters, expressions) for step in plan.steps]),
        values=() if value is None else (value,),
        expressions=expressions,
    )
    columns = [
        "hits.1 AS times",
        "hits.3 AS steps",
        *(() if value is None else ("hits.4 AS labels",)),
    ]
    completions = _COMPLETIONS.format(window=window, end=len(plan.steps) + 1)
    attempts = select_from(
        paths,
        columns,
        ["*", completions],
        ["*", _POSITIONS.format(window=window)],
        [*(() if value is None else ("labels[positions[1]] AS c0",)), _ELAPSED],
    )
    return _aggregate(plan, attempts, parameters)


def _aggregate(plan: FunnelPlan, attempts: str, parameters: Parameters) -> CompiledQuery:
    aggregates = [
        "countForEach(elapsed) AS c1",
        "quantileExactInclusiveForEach(0.5)(elapsed) AS c2",
    ]
    outputs = [Output("counts", OutputKind.NUMBERS), Output("medians", OutputKind.NUMBERS)]
    if plan.group_by is None:
        sql = statement(clause("SELECT", ",", aggregates), f"FROM {subquery(attempts)}")
        return CompiledQuery(sql, parameters.values, tuple(outputs), plan.website_id)
    kind = OUTPUT_KINDS[plan.group_by.kind]
    grouped = statement(
        clause("SELECT", ",", ["c0", *aggregates]), f"FROM {subquery(attempts)}", "GROUP BY c0"
    )
    keys = (OrderKey(1, OutputKind.NUMBER, Direction.DESC), OrderKey(0, kind, Direction.ASC))
    limit = parameters.bind(QUERY_LIMITS["maxFunnelGroups"] + 1, "UInt64")
    sql = statement(
        f"SELECT *\nFROM {subquery(grouped)}",
        clause("ORDER BY", ",", write_order(keys, ["c0", "c1[1]"])),
        f"LIMIT {limit}",
    )
    group_output = Output(plan.group_by.name, kind)
    return CompiledQuery(sql, parameters.values, (group_output, *outputs), plan.website_id)
