"""Values and standard queries, done wrong."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_VALUES: Final = f"{QUERY}/values/check.py"
_VALUES_SERVICE: Final = f"{QUERY}/values/service.py"
_STANDARD: Final = f"{QUERY}/standard/compile.py"
_STANDARD_CHECK: Final = f"{QUERY}/standard/check.py"
_STANDARD_SERVICE: Final = f"{QUERY}/standard/service.py"
_DEFINITIONS: Final = f"{QUERY}/standard/definitions.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Values
    WrongEngine(
        "values", "the case counts", _VALUES, '(f"(?i){_escape(search)}",)', "(_escape(search),)"
    ),
    WrongEngine("values", "a search is a pattern", _VALUES, "{_escape(search)}", "{search}"),
    WrongEngine(
        "values", "missing values are listed", _VALUES, "(is_set, *contains)", "(*contains,)"
    ),
    WrongEngine(
        "values",
        "the limit is one less",
        _VALUES,
        'return min(int(value), QUERY_LIMITS["maxValues"])',
        'return min(int(value), QUERY_LIMITS["maxValues"] - 1)',
    ),
    WrongEngine("values", "always truncated", _VALUES_SERVICE, "> plan.limit,", ">= plan.limit,"),
    # Standard queries
    WrongEngine(
        "standard",
        "bounces are all sessions",
        _DEFINITIONS,
        '_count("bounces", Filter("is_bounce", Operator.EQ.value, value=True))',
        '_count("bounces")',
    ),
    WrongEngine(
        "standard",
        "views are all events",
        _DEFINITIONS,
        '"events", ("path",), [_count("views"), _VISITORS], _PAGE_VIEW, _is_set("path")',
        '"events", ("path",), [_count("views"), _VISITORS], _is_set("path")',
    ),
    WrongEngine(
        "standard",
        "campaigns need all three texts",
        _DEFINITIONS,
        "Filter(any_of=are_set)",
        "Filter(all_of=are_set)",
    ),
    WrongEngine(
        "standard",
        "rows of one type count for another",
        _STANDARD,
        "for key in own_keys if conditions else ():",
        "for key in ():",
    ),
    WrongEngine(
        "standard",
        "the group without a text is listed",
        _STANDARD,
        "has_text = [f\"c{key} != ''\" for own_keys in keys for key in own_keys]",
        'has_text = ["true"]',
    ),
    WrongEngine(
        "standard",
        "types are ordered by the first type's select",
        _STANDARD,
        "[{_NUMBER.name} + 1] DESC",
        "[1] DESC",
    ),
    WrongEngine(
        "standard",
        "the limit holds for all types",
        _STANDARD,
        'f"LIMIT {limit} BY {_NUMBER.name}"',
        'f"LIMIT {limit}"',
    ),
    WrongEngine(
        "standard",
        "filters of the request are those of a type",
        _STANDARD,
        "filters=first.plan.filters[len(first.own_filters) :]",
        "filters=first.plan.filters",
    ),
    WrongEngine(
        "standard",
        "the bounce rate is of visitors",
        _STANDARD_SERVICE,
        'sessions = columns["sessions"]',
        'sessions = columns["visitors"]',
    ),
    WrongEngine(
        "standard",
        "online counts the last ten minutes",
        _DEFINITIONS,
        "ONLINE_MS: Final = 300_000",
        "ONLINE_MS: Final = 600_000",
    ),
    WrongEngine(
        "standard",
        "online counts what is to come",
        _STANDARD_CHECK,
        "PlannedFilter(time, Operator.LTE, (now_ms,)),\n",
        "",
    ),
)
