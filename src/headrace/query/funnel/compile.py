"""Compile a funnel to one statement with bound parameters (ADR 30).

The text depends on the shape of the plan alone: the number of steps, what custom queries depend on
within each, and the columns. Every value is bound, the website exactly once.
"""

from headrace.model.catalog import QUERY_LIMITS
from headrace.model.plan import CompiledQuery, Direction, Output, OutputKind
from headrace.ports.store import Dialect
from headrace.query.funnel.plan import FunnelPlan
from headrace.query.sql.builder import (
    Parameters,
    clause,
    select_from,
    statement,
    subquery,
)
from headrace.query.sql.expressions import OUTPUT_KINDS, Expressions
from headrace.query.sql.order_by import OrderKey, write_order
from headrace.query.sql.paths import (
    EPOCH_MS,
    GATHERED_IDS,
    arrival_of,
    hits_in_order,
    select_paths,
    step_bits,
    step_condition,
)
from headrace.query.sql.sources.visible_rows import bind_visible_rows
from headrace.query.sql.time_buckets import bind_range

_STEP_BITS = 16
_MIN_STEPS = 2

_HIT = f"{EPOCH_MS} * {1 << _STEP_BITS} + bits"

# Who has no event of the second step has reached the first: nothing is to be evaluated.
_BY_TIME = (
    "if(bitTest(groupBitOr(bits), 1), arraySort(groupArray(hit)), emptyArrayUInt64()) AS by_time"
)

_IN_TIME = "start + {window} >= hit"

# There is one pass over the events of an id for each step. `starts` has for each event the start of
# the latest attempt that reaches the step with it, 0 where none does; the latest one is enough: an
# earlier start is dropped before it. A start is its event with all bits set, so that comparing it
# with another event compares times. Starts grow with time, so the last one before an event is the
# latest before it. `completions` has the event that completed each step first, 0 for none.
_STARTS = "arrayMap(hit -> if(bitTest(hit, 0), bitOr(hit, 65535), 0), hits) AS starts_of_first"
_REACHED = f"""arrayFold(
    (reached, step) -> (
        arrayMap(
            (hit, start) -> if(bitTest(hit, step) AND {_IN_TIME}, start, 0),
            hits,
            arrayShiftRight(arrayFill(start -> start != 0, reached.1), 1, toUInt64(0))
        ),
        arrayPushBack(reached.2, arrayFirst((hit, start) -> start != 0, hits, reached.1))
    ),
    range(1, {{steps}}),
    (starts_of_first, emptyArrayUInt64())
) AS reached"""
_COMPLETIONS = """arrayFilter(
    hit -> hit != 0,
    arrayPushBack(
        arrayPopFront(reached.2),
        arrayFirst((hit, start) -> start != 0, hits, reached.1)
    )
) AS completions"""
_COMPLETIONS_OF_TWO = f"""arrayFilter(hit -> hit != 0, [
    arrayFirst(
        (hit, start) -> bitTest(hit, 1) AND {_IN_TIME},
        hits,
        arrayShiftRight(arrayFill(start -> start != 0, starts_of_first), 1, toUInt64(0))
    )
]) AS completions"""

# The attempt that counts: of those that reach the last reached step the one that began first. It
# ends with the first event that completes this step, and began with the first possible event at
# most a window before. With groups it matters also when those began who reached the first step.
_START = """arrayFirst(
    hit -> bitTest(hit, 0) AND bitOr(hit, 65535) + {window} >= completions[-1],
    hits
)"""
_FIRST_START = "arrayMin(arrayFilter(hit -> bitTest(hit, 0), gathered))"

# From there each step is the earliest event after that of the step before.
_LONG = "if(length(completions) > 1, hits, emptyArrayUInt64()) AS long"
_POSITIONS = """arrayFold(
    (positions, step) -> arrayPushBack(
        positions,
        arrayFirstIndex(
            (hit, position) -> bitTest(hit, step) AND position > positions[-1],
            long,
            arrayEnumerate(long)
        )
    ),
    range(1, length(completions)),
    [arrayFirstIndex(hit -> bitTest(hit, 0) AND bitShiftRight(hit, 16) = began, long)]
) AS positions"""
_ELAPSED_BETWEEN = """if(
    empty(completions),
    emptyArrayInt64(),
    arrayMap(
        hit -> bitShiftRight(hit, 16) - began,
        arrayPushBack(
            arrayMap(position -> long[position], arrayPopFront(positions)),
            completions[-1]
        )
    )
) AS elapsed"""
_ELAPSED = "arrayMap(hit -> bitShiftRight(hit, 16) - began, completions) AS elapsed"

# Of the first events of an attempt in one millisecond the one that arrived first is its start.
_LABEL = f"""tupleElement(labels[arraySort(
    position -> {arrival_of("ids[position]")},
    arrayFilter(
        (position, hit) -> bitTest(hit, 0) AND bitShiftRight(hit, 16) = began,
        arrayEnumerate(gathered),
        gathered
    )
)[1]], 1) AS c0"""


def compile_funnel(plan: FunnelPlan, dialect: Dialect) -> CompiledQuery:
    """Return the statement of a plan in a store's dialect.

    Its columns are the group, if there is one, for each step how many reached it, and for each from
    the second on the median of the milliseconds from the first. Steps that nobody reached may be
    missing at the end. It reads one group more than a result has.
    """
    parameters = Parameters()
    visible = bind_visible_rows(plan.website_id, plan.cutoff_ms, parameters)
    range_parameters = bind_range(plan.range, parameters, is_bucketed=False)
    window = parameters.bind(plan.window_ms << _STEP_BITS, "UInt64")
    expressions = Expressions(parameters, dialect)
    value = None if plan.group_by is None else expressions.value(plan.group_by)
    paths = select_paths(
        by=plan.by,
        visible=visible,
        range_parameters=range_parameters,
        bits=step_bits([step_condition(step.filters, expressions) for step in plan.steps]),
        hit=_HIT,
        columns=[
            _BY_TIME,
            "groupArray(hit) AS gathered",
            GATHERED_IDS,
            *(() if value is None else (f"groupArray(({value},)) AS labels",)),
        ],
        expressions=expressions,
    )
    return _aggregate(plan, _attempts(plan, paths, window), parameters)


def _attempts(plan: FunnelPlan, paths: str, window: str) -> str:
    """Return a SELECT of the times of the steps after the first in each id's attempt, and `c0`."""
    has_groups, is_long = plan.group_by is not None, len(plan.steps) > _MIN_STEPS
    start = _START.format(window=window)
    if has_groups:
        start = f"if(empty(completions), {_FIRST_START}, {start})"
    return select_from(
        paths,
        ["*", hits_in_order(_STEP_BITS)],
        ["*", _STARTS],
        *(
            [["*", _REACHED.format(window=window, steps=len(plan.steps))], ["*", _COMPLETIONS]]
            if is_long
            else [["*", _COMPLETIONS_OF_TWO.format(window=window)]]
        ),
        ["*", f"bitShiftRight({start}, {_STEP_BITS}) AS began", *([_LONG] if is_long else [])],
        *([["*", _POSITIONS]] if is_long else []),
        [*([_LABEL] if has_groups else []), _ELAPSED_BETWEEN if is_long else _ELAPSED],
    )


def _aggregate(plan: FunnelPlan, attempts: str, parameters: Parameters) -> CompiledQuery:
    aggregates = [
        "arrayPushFront(countForEach(elapsed), count()) AS c1",
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
