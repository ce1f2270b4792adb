"""Sessions and profiles, done wrong: what they are made of, when they count, whose texts."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_TABLES: Final = f"{QUERY}/sql/sources/tables.py"
_DERIVED: Final = f"{QUERY}/sql/sources/derived_tables.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    WrongEngine(
        "custom",
        "a bounce may take ten seconds",
        _DERIVED,
        "{_DURATION_MS} < {_BOUNCE_BELOW_MS}",
        "{_DURATION_MS} <= {_BOUNCE_BELOW_MS}",
    ),
    WrongEngine(
        "custom",
        "a session without a page view is no bounce",
        _DERIVED,
        "{PAGE_VIEW_COUNT} <= {_BOUNCE_MAX_PAGE_VIEWS}",
        "{PAGE_VIEW_COUNT} = {_BOUNCE_MAX_PAGE_VIEWS}",
    ),
    WrongEngine(
        "custom",
        "all events of a session are page views",
        _DERIVED,
        '"page_views": as_number(PAGE_VIEW_COUNT),\n    "event_count": as_number(EVENT_COUNT),\n'
        "}\n\n\ndef session_aggregate",
        '"page_views": as_number(EVENT_COUNT),\n    "event_count": as_number(EVENT_COUNT),\n'
        "}\n\n\ndef session_aggregate",
    ),
    WrongEngine(
        "custom",
        "a duration is in whole seconds",
        _DERIVED,
        'as_number(f"{_DURATION_MS} / 1000")',
        'as_number(f"intDiv({_DURATION_MS}, 1000)")',
    ),
    WrongEngine(
        "custom",
        "the first event of a session decides, even without a text",
        _DERIVED,
        "return f\"argMinIf({_dimension(column)}, {{first_place}}, {_dimension(column)} != '')\"",
        'return f"argMin({_dimension(column)}, {{first_place}})"',
    ),
    WrongEngine(
        "custom",
        "the first and the last text are by time alone",
        _DERIVED,
        "argMaxIf({_dimension(column)}, {{last_place}}",
        "argMaxIf({_dimension(column)}, {{last_ms}}",
    ),
    WrongEngine(
        "custom",
        "a profile has the campaign of its last event",
        _DERIVED,
        "is_first = column.startswith(_FIRST_TOUCH_PREFIX)",
        'is_first = column == "referrer"',
    ),
    WrongEngine(
        "custom",
        "a session whose first event has no visitor has none",
        _DERIVED,
        'f"argMinIf({{person_key}}, {{first_place}}, {{person_key}} != {EMPTY_ID_HASH})"',
        'f"argMin({{person_key}}, {{first_place}})"',
    ),
    WrongEngine(
        "custom",
        "events without a session are a session of their profile",
        _DERIVED,
        'f"uniqExactIf({{session_key}}, {{session_key}} != {EMPTY_ID_HASH})"',
        'f"uniqExact({{session_key}})"',
    ),
    WrongEngine(
        "custom",
        "sessions are made of the events of the range",
        _TABLES,
        "    return [has_id, in_range]\n",
        "    return [has_id, in_range, on_days]\n",
    ),
    WrongEngine(
        "custom",
        "events without an id are a session",
        _TABLES,
        'has_id = RollupExpression(f"{grouping.key} != {EMPTY_ID_HASH}")',
        'has_id = RollupExpression("true")',
    ),
    WrongEngine(
        "custom",
        "a session counts wherever it touches a day of the range",
        _TABLES,
        "return _timed_source(plan, subquery(sessions), [], ranges)",
        'return Source([], subquery(sessions), ["true"])'
        " if plan.granularity is None and plan.compare is None"
        " else _timed_source(plan, subquery(sessions), [], ranges)",
    ),
    WrongEngine(
        "custom",
        "bots make sessions",
        _TABLES,
        "[*visible.rollups(), RollupExpression(NOT_A_BOT)],",
        "visible.rollups(),",
    ),
    WrongEngine(
        "custom",
        "a bot with the id of a profile makes it active",
        _TABLES,
        "[*visible.stored_rows(time), NOT_A_BOT, *range_conditions(time, range_parameters)]",
        "[*visible.stored_rows(time), *range_conditions(time, range_parameters)]",
    ),
    WrongEngine(
        "custom",
        "a profile is active in a part of a day by its first and last event",
        _TABLES,
        "    if rollup_days_suffice(days):\n",
        "    if True:\n",
    ),
    WrongEngine(
        "custom",
        "a profile is active from the first to the last event of all its days",
        _TABLES,
        '"max({last_ms} >= {start} AND {first_ms} < {end})"',
        '"max({last_ms}) >= {start} AND min({first_ms}) < {end}"',
    ),
    WrongEngine(
        "custom",
        "a profile is active at the end of the range",
        _TABLES,
        "{first_ms} < {end})",
        "{first_ms} <= {end})",
    ),
)
