"""Filters as SQL, with a template for each operator. No condition evaluates to NULL."""

from collections.abc import Mapping, Sequence

from headrace.model.catalog import LIST_OPERATORS, Kind, Operator
from headrace.model.plan import Conjunction, PlannedCondition, PlannedFilter, PlannedGroup
from headrace.query.sql.builder import group
from headrace.query.sql.expressions import Expressions
from headrace.query.sql.json_properties import canonical_text, string_value
from headrace.query.sql.patterns import write_match

OPERATORS: Mapping[Operator, str] = {
    Operator.EQ: "{column} = {value}",
    Operator.NE: "{column} != {value}",
    Operator.GT: "{column} > {value}",
    Operator.LT: "{column} < {value}",
    Operator.GTE: "{column} >= {value}",
    Operator.LTE: "{column} <= {value}",
    Operator.CONTAINS: "position({column}, {value}) > 0",  # not LIKE: % is a plain character
    Operator.NOT_CONTAINS: "position({column}, {value}) = 0",
    Operator.STARTS_WITH: "startsWith({column}, {value})",
    Operator.NOT_STARTS_WITH: "NOT startsWith({column}, {value})",
    Operator.ENDS_WITH: "endsWith({column}, {value})",
    Operator.NOT_ENDS_WITH: "NOT endsWith({column}, {value})",
    Operator.IN: "{column} IN {value}",
    Operator.NOT_IN: "{column} NOT IN {value}",
}

MATCHES: Mapping[Operator, str] = {
    Operator.MATCHES: "{match}",
    Operator.NOT_MATCHES: "NOT {match}",
}
"""Operators whose value is a regular expression."""

CONJUNCTIONS: Mapping[Conjunction, str] = {Conjunction.OR: " OR", Conjunction.AND: " AND"}

MEMBERSHIPS: Mapping[Operator, str] = {
    Operator.EQ: "{match}",
    Operator.NE: "NOT {match}",
    Operator.IN: "{match}",
    Operator.NOT_IN: "NOT {match}",
}
"""Operators that compare a property of any type with a set of values; `eq` has a set of one."""

PRESENCE: Mapping[Operator, str] = {
    Operator.IS_SET: "{is_set}",
    Operator.IS_NOT_SET: "NOT {is_set}",
}

IS_SET: Mapping[Kind, str] = {
    Kind.TEXT: "({column} != '')",
    Kind.NUMBER: "isNotNull({column})",
    Kind.DATETIME: "true",
    Kind.BOOLEAN: "true",
    Kind.IDENTIFIER: "true",
    Kind.JSON: "ifNull({column} != '\"\"', false)",
}
"""Whether a value is one that `uniq` counts."""

MATCHING_MISSING = frozenset(
    {
        Operator.NE,
        Operator.NOT_IN,
        Operator.NOT_CONTAINS,
        Operator.NOT_STARTS_WITH,
        Operator.NOT_ENDS_WITH,
        Operator.NOT_MATCHES,
    }
)
"""The operators that match a missing value and a property of another type."""

_PARAMETER_TYPES: Mapping[Kind, str] = {
    Kind.TEXT: "String",
    Kind.NUMBER: "Float64",
    Kind.DATETIME: "Int64",
    Kind.BOOLEAN: "Bool",
    Kind.IDENTIFIER: "String",
}


def write_condition(planned: PlannedCondition, expressions: Expressions) -> str:
    """Return the SQL of a filter or a group and bind its values."""
    if isinstance(planned, PlannedGroup):
        items = [write_condition(item, expressions) for item in planned.items]
        return group(CONJUNCTIONS[planned.conjunction], items)
    if planned.operator in PRESENCE:
        is_set = IS_SET[planned.column.kind].format(column=expressions.name(planned.column))
        return PRESENCE[planned.operator].format(is_set=is_set)
    if planned.column.kind is Kind.JSON:
        return _write_property_condition(planned, expressions)
    condition = _compare(
        expressions.value(planned.column),
        planned,
        expressions,
        _PARAMETER_TYPES[planned.column.kind],
    )
    return (
        _coalesce_missing(condition, planned) if planned.column.kind is Kind.NUMBER else condition
    )


def _write_property_condition(planned: PlannedFilter, expressions: Expressions) -> str:
    if planned.operator in MEMBERSHIPS:
        match = _match(planned, expressions)
        return MEMBERSHIPS[planned.operator].format(match=match)
    is_text = isinstance(planned.values[0], str)
    condition = _compare(
        string_value(expressions.value(planned.column))
        if is_text
        else expressions.number(planned.column),
        planned,
        expressions,
        "String" if is_text else "Float64",
    )
    return _coalesce_missing(condition, planned)


def _match(planned: PlannedFilter, expressions: Expressions) -> str:
    texts = [canonical_text(item) for item in planned.values]
    known = [text for text in texts if text is not None]
    numbers = [item for item, text in zip(planned.values, texts, strict=True) if text is None]
    match = _in_array(expressions.value(planned.column), known, "String", expressions)
    if not all(isinstance(item, str) for item in planned.values):
        number = expressions.number(planned.column)
        match += f" OR {_in_array(number, numbers, 'Float64', expressions)}"
    return f"ifNull({match}, false)"


def _in_array(
    column: str, values: Sequence[object], type_name: str, expressions: Expressions
) -> str:
    return f"{column} IN {expressions.parameters.bind(values, f'Array({type_name})')}"


def _compare(column: str, planned: PlannedFilter, expressions: Expressions, type_name: str) -> str:
    if planned.operator in MATCHES:
        match = write_match(column, str(planned.values[0]), expressions.parameters)
        return MATCHES[planned.operator].format(match=match)
    if planned.operator in LIST_OPERATORS:
        value = expressions.parameters.bind(list(planned.values), f"Array({type_name})")
    else:
        value = expressions.parameters.bind(planned.values[0], type_name)
    return OPERATORS[planned.operator].format(column=column, value=value)


def _coalesce_missing(condition: str, planned: PlannedFilter) -> str:
    """Replace the NULL of a missing value by whether the operator matches it."""
    missing = "true" if planned.operator in MATCHING_MISSING else "false"
    return f"ifNull({condition}, {missing})"
