"""Reading the daily rollup in the place of events, done wrong: when it may be read, and how."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_DAILY_ROWS: Final = f"{QUERY}/sql/sources/daily_rows.py"
_EXPRESSIONS: Final = f"{QUERY}/sql/expressions.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # When it is read
    WrongEngine(
        "rollup",
        "hours are read from the rollup",
        _DAILY_ROWS,
        "return plan.granularity is not Granularity.HOURLY and not any(offsets)",
        "return not any(offsets)",
    ),
    WrongEngine(
        "rollup",
        "days of a zone are those of the rollup",
        _DAILY_ROWS,
        "return plan.granularity is not Granularity.HOURLY and not any(offsets)",
        "return plan.granularity is not Granularity.HOURLY or any(offsets)",
    ),
    WrongEngine(
        "rollup",
        "a compared range may have another clock than days of UTC",
        _DAILY_ROWS,
        "offsets = (offset for days in plan.ranges for _, offset in days.offsets)",
        "offsets = (offset for _, offset in plan.range.offsets)",
    ),
    # Which days are divided
    WrongEngine(
        "rollup",
        "the last day of a range is never divided",
        _DAILY_ROWS,
        "for end in (days.start_ms, days.end_ms)}",
        "for end in (days.start_ms,)}",
    ),
    WrongEngine(
        "rollup",
        "the days that the compared range divides are whole",
        _DAILY_ROWS,
        "for day in divided_days(plan.ranges)]",
        "for day in divided_days(plan.ranges[:1])]",
    ),
    WrongEngine(
        "rollup",
        "divided days count twice",
        _DAILY_ROWS,
        "    if divided:\n        listed",
        "    if False:\n        listed",
    ),
    # What its rows stand for
    WrongEngine(
        "rollup",
        "a filter on one name of page views counts all page views",
        _DAILY_ROWS,
        "set(condition.values) == set(PAGE_VIEW_NAMES)",
        "set(condition.values) <= set(PAGE_VIEW_NAMES)",
    ),
    WrongEngine(
        "rollup",
        "a filter that leaves page views out counts them",
        _DAILY_ROWS,
        "        and condition.operator is Operator.IN\n",
        "",
    ),
    WrongEngine(
        "rollup",
        "rows of the rollup are counted, not their events",
        _EXPRESSIONS,
        "return COUNTED_ROWS, PAGE_VIEWS if is_of_page_views else EVENT_COUNT",
        'return (COUNTED_ROWS, PAGE_VIEWS) if is_of_page_views else (ROWS, "")',
    ),
    WrongEngine(
        "rollup",
        "each event of a divided day is a page view",
        _DAILY_ROWS,
        'yield f"{_IS_PAGE_VIEW} AS {PAGE_VIEWS}"',
        'yield f"toUInt64(1) AS {PAGE_VIEWS}"',
    ),
    WrongEngine(
        "rollup",
        "events without an id are a visitor of the rollup",
        _DAILY_ROWS,
        'f"if({key} = {EMPTY_ID_HASH}, to{KEY_TYPE}({NO_KEY}), {key}) AS {ID_KEYS[name]}"',
        'f"{key} AS {ID_KEYS[name]}"',
    ),
    WrongEngine(
        "rollup",
        "expired events of divided days count",
        _DAILY_ROWS,
        "[*visible.stored_rows(), *_bot_conditions(plan),",
        "[*visible.stored_rows()[:1], *_bot_conditions(plan),",
    ),
    WrongEngine(
        "rollup",
        "a filter on bots never reads the rollup's bots",
        _DAILY_ROWS,
        "return [] if IS_BOT in _names(plan) else [NOT_A_BOT]",
        "return [NOT_A_BOT]",
    ),
)
