"""Groups of filters, filters of selects and having, done wrong."""

from typing import Final

from tests.mutation.wrong_engine import QUERY, WrongEngine

_CONDITIONS: Final = f"{QUERY}/sql/conditions.py"
_PATTERNS: Final = f"{QUERY}/sql/patterns.py"
_COMPILE: Final = f"{QUERY}/sql/compile.py"
_RESULT: Final = f"{QUERY}/plan_result.py"
_AGGREGATES: Final = f"{QUERY}/sql/aggregates.py"
_BOTS: Final = f"{QUERY}/sql/bots.py"

WRONG_ENGINES: Final[tuple[WrongEngine, ...]] = (
    # Groups of filters and operators
    WrongEngine(
        "custom", "or is and", _CONDITIONS, 'Conjunction.OR: " OR"', 'Conjunction.OR: " AND"'
    ),
    WrongEngine(
        "custom", "and is or", _CONDITIONS, 'Conjunction.AND: " AND"', 'Conjunction.AND: " OR"'
    ),
    WrongEngine(
        "custom",
        "ends_with searches the beginning",
        _CONDITIONS,
        'Operator.ENDS_WITH: "endsWith',
        'Operator.ENDS_WITH: "startsWith',
    ),
    WrongEngine(
        "custom",
        "not_ends_with leaves missing values out",
        _CONDITIONS,
        "        Operator.NOT_ENDS_WITH,\n",
        "",
    ),
    WrongEngine(
        "custom",
        "not_matches leaves missing values out",
        _CONDITIONS,
        "        Operator.NOT_MATCHES,\n",
        "",
    ),
    WrongEngine(
        "custom",
        "a dot matches a new line",
        _PATTERNS,
        'return f"(?-s){pattern}" if is_searched',
        "return pattern if is_searched",
    ),
    WrongEngine(
        "custom",
        "patterns beyond ASCII are searched by their first byte",
        _PATTERNS,
        "is_searched = pattern.isascii() and not",
        "is_searched = not",
    ),
    WrongEngine(
        "custom",
        "the empty text is set",
        _CONDITIONS,
        "Kind.TEXT: \"({column} != '')\"",
        'Kind.TEXT: "true"',
    ),
    WrongEngine(
        "custom",
        "an empty property is set",
        _CONDITIONS,
        '"ifNull({column} != \'\\"\\"\', false)"',
        '"isNotNull({column})"',
    ),
    # Filters of selects, and bots
    WrongEngine(
        "custom",
        "filters of a select are joined by or",
        _AGGREGATES,
        'joined = " AND ".join([*own, *conditions])',
        'joined = " OR ".join([*own, *conditions])',
    ),
    WrongEngine(
        "custom",
        "a select that names bots shows them to all selects",
        _BOTS,
        "tuple(() if lifts else (NOT_A_BOT,) for lifts in lifting)",
        "tuple(() for lifts in lifting)",
    ),
    WrongEngine(
        "custom",
        "a filter on bots of a select is no exception",
        _BOTS,
        "    if not any(lifting):\n",
        "    if True:\n",
    ),
    WrongEngine(
        "custom",
        "p75 is p90",
        _AGGREGATES,
        'Aggregate.P75: _percentile("0.75")',
        'Aggregate.P75: _percentile("0.9")',
    ),
    WrongEngine(
        "custom",
        "the good threshold is not good",
        _AGGREGATES,
        'GOOD_SHARE: _share(f"{{column}} <= {_GOOD}")',
        'GOOD_SHARE: _share(f"{{column}} < {_GOOD}")',
    ),
    WrongEngine(
        "custom",
        "unknown metrics count for shares",
        _AGGREGATES,
        'condition=f"{_RATED} AND isNotNull({{column}})"',
        'condition="isNotNull({column})"',
    ),
    WrongEngine(
        "custom",
        "latest is earliest",
        _AGGREGATES,
        'Aggregate.LATEST: Form((Part("max"',
        'Aggregate.LATEST: Form((Part("min"',
    ),
    # Having
    WrongEngine(
        "custom",
        "null matches every condition of having",
        _COMPILE,
        "'true' if planned.operator is Operator.NE else 'false'",
        "'true'",
    ),
    WrongEngine(
        "custom",
        "conditions of having are joined by or",
        _COMPILE,
        'clause("HAVING", " AND", _having_conditions',
        'clause("HAVING", " OR", _having_conditions',
    ),
    WrongEngine(
        "custom",
        "the row of totals is never filtered",
        _RESULT,
        "kept = [row for row in rows if matches_having(plan, row)]",
        "kept = list(rows)",
    ),
    WrongEngine(
        "custom",
        "having names the select before",
        _COMPILE,
        "columns[first_select(plan) :], parameters)\n    if plan.others",
        "columns[first_select(plan) - 1 :], parameters)\n    if plan.others",
    ),
)
