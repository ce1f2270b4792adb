"""Funnels and retention, done wrong."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_FUNNEL: Final = f"{QUERY}/funnel/compile.py"
_FUNNEL_SERVICE: Final = f"{QUERY}/funnel/service.py"
_PATHS: Final = f"{QUERY}/sql/paths.py"
_RETENTION: Final = f"{QUERY}/retention/compile.py"
_RETENTION_CHECK: Final = f"{QUERY}/retention/check.py"
_RETENTION_SERVICE: Final = f"{QUERY}/retention/service.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Funnels
    WrongEngine(
        "paths",
        "the window is open at its end",
        _FUNNEL,
        "start + {window} >= hit",
        "start + {window} > bitOr(hit, 65535)",
    ),
    WrongEngine(
        "paths",
        "one event can be two steps",
        _FUNNEL,
        "arrayShiftRight(arrayFill(start -> start != 0, reached.1), 1, toUInt64(0))",
        "arrayFill(start -> start != 0, reached.1)",
    ),
    WrongEngine(
        "paths",
        "only the event right before begins an attempt",
        _FUNNEL,
        "arrayFill(start -> start != 0, reached.1)",
        "reached.1",
    ),
    WrongEngine(
        "paths",
        "of two steps one event can be both",
        _FUNNEL,
        "arrayShiftRight(arrayFill(start -> start != 0, starts_of_first), 1, toUInt64(0))",
        "arrayFill(start -> start != 0, starts_of_first)",
    ),
    WrongEngine(
        "paths",
        "who reached the first step alone began with any event",
        _FUNNEL,
        "if(empty(completions), {_FIRST_START}, {start})",
        "if(empty(completions), arrayMin(gathered), {start})",
    ),
    WrongEngine(
        "paths",
        "a later step may come before",
        _FUNNEL,
        "bitTest(hit, step) AND position > positions[-1]",
        "bitTest(hit, step)",
    ),
    WrongEngine(
        "paths",
        "the first attempt counts, however far it got",
        _FUNNEL,
        "bitTest(hit, 0) AND bitOr(hit, 65535) + {window} >= completions[-1]",
        "bitTest(hit, 0)",
    ),
    WrongEngine(
        "paths",
        "of simultaneous first events any gives the group",
        _FUNNEL,
        'position -> {arrival_of("ids[position]")},\n',
        "position -> ids[position],\n",
    ),
    WrongEngine(
        "paths",
        "the median is an element",
        _FUNNEL,
        "quantileExactInclusiveForEach(0.5)",
        "quantileExactForEach(0.5)",
    ),
    WrongEngine(
        "paths",
        "the rate is of the step before",
        _FUNNEL_SERVICE,
        "count / counts[0] if counts[0] else None",
        "count / counts[max(0, number - 2)] if counts[max(0, number - 2)] else None",
    ),
    WrongEngine(
        "paths",
        "simultaneous events come in any order",
        _PATHS,
        '{arrival_of("id")}), gathered, ids)',
        "id), gathered, ids)",
    ),
    WrongEngine(
        "paths",
        "events without an id are somebody's",
        _PATHS,
        'f"{group_key} != {missing}"',
        '"true"',
    ),
    WrongEngine(
        "paths",
        "a step on bots shows them to all steps",
        _PATHS,
        "*(() if sees_bots else (NOT_A_BOT,))",
        "*()",
    ),
    # Retention
    WrongEngine(
        "paths",
        "the first event is a return",
        _RETENTION,
        "arraySlice(hits, first_position + 1)",
        "arraySlice(hits, first_position)",
    ),
    WrongEngine(
        "paths",
        "a return at once counts, whichever arrived first",
        _RETENTION,
        "plan.first != plan.returning",
        "False",
    ),
    WrongEngine(
        "paths",
        "cohorts begin after the range",
        _RETENTION,
        'f"{bucket_expr(Granularity.DAILY)} <= {last_day}"',
        'f"{last_day} > 0"',
    ),
    WrongEngine(
        "paths",
        "returns are counted, not those who return",
        _RETENTION,
        "has(returned, period)",
        "toUInt8(countEqual(returned, period) + 0)",
    ),
    WrongEngine(
        "paths",
        "returns of one bucket count twice",
        _RETENTION,
        " - cohort,\n",
        " - cohort + 1,\n",
    ),
    WrongEngine(
        "paths",
        "periods that have not begun are 0",
        _RETENTION_SERVICE,
        "count if cohort + period <= plan.current_bucket else None",
        "count",
    ),
    WrongEngine(
        "paths",
        "the last period is not read",
        _RETENTION_CHECK,
        "granularity) + periods - 1",
        "granularity) + periods - 2",
    ),
)
