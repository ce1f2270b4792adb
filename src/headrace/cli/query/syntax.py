"""The language of `headrace query`: --select, --where, --group-by and --order-by.

It parses only; the service checks names and values. Names, values and items can be in single or
double quotes, within which a quote is doubled.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from headrace.base.errors import OperatorError
from headrace.model.catalog import (
    ALL_ROWS,
    LIST_OPERATORS,
    PRESENCE_OPERATORS,
    TEXT_OPERATORS,
    Kind,
    Operator,
    Table,
)
from headrace.model.wire import Filter, Having, OrderBy, Scalar, Select
from headrace.model.wire_analyses import FunnelStep
from headrace.query.validate.synonyms import OPERATOR_SYNONYMS, meaning_of

Part = TypeVar("Part")

SYMBOLS: Mapping[str, Operator] = {
    "=": Operator.EQ,
    "!=": Operator.NE,
    ">": Operator.GT,
    ">=": Operator.GTE,
    "<": Operator.LT,
    "<=": Operator.LTE,
}
"""Operators that need no spaces around them. Each also has a word, which does."""

_SYMBOLS_BY_NAME = {operator.value: symbol for symbol, operator in SYMBOLS.items()}

_TEXT_KINDS = frozenset({Kind.TEXT, Kind.IDENTIFIER})

_QUOTED = r"(?:'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
_WORDS = "|".join(operator.value.replace("_", r"[_\s]+") for operator in Operator)
_FLAGS = re.IGNORECASE | re.DOTALL

_NAME = re.compile(rf"\s*({_QUOTED}|[^\s=!<>'\"]+)", _FLAGS)
_OPERATOR = re.compile(rf"\s*([=!<>]+)|\s+({_WORDS})(?=[\s('\"]|$)", _FLAGS)
_ITEM = re.compile(rf"(?:^|,)\s*({_QUOTED}?[^,]*)", _FLAGS)
_SELECT = re.compile(
    rf"\s*(?P<aggregate>\w+)\s*(?:\(\s*(?P<field>{_QUOTED}|[^()]*?)\s*\))?"
    r"(?:\s+as\s+(?P<alias>\S.*))?\s*",
    _FLAGS,
)
_DISTINCT = re.compile(r"distinct\s+(?P<column>\S.*)", _FLAGS)
_ORDER = re.compile(rf"\s*(?P<name>{_QUOTED}|\S.*?)(?:\s+(?P<direction>asc|desc))?\s*", _FLAGS)


_WHERE = re.compile(rf"\s+where\s+(?=(?:[^'\"]|{_QUOTED})*$)", _FLAGS)


class _Word(NamedTuple):
    text: str
    is_quoted: bool


def read_select(text: str, table: Table | None = None) -> Select:
    """Read `count`, `uniq(anonymous_id)` or `p95(properties.seconds) as slow where country = DE`.

    More conditions follow with a `where` for each; one within quotes is part of a value.
    """
    return _read("select", text, lambda written: _filtered_select(written, table))


def read_filter(text: str, table: Table | None) -> Filter:
    """Read `country = DE`, `path starts_with /blog`, `country in DE, AT` or `referrer is_set`.

    An unquoted number or boolean has that type, except for text columns of the table and operators
    that take texts. A quoted value is text.
    """
    return _read("where", text, lambda written: _filter(written, table))


def read_step(text: str, table: Table) -> FunnelStep:
    """Read `paid where event_name = purchase`: the name of a step and its conditions.

    More conditions follow with a `where` for each, as in a select.
    """
    return _read("step", text, lambda written: _step(written, table))


def read_having(text: str) -> Having:
    """Read `visitors > 10`: the name of an output, an operator and a number."""
    return _read("having", text, _having)


def read_group(text: str) -> list[str]:
    """Read `path`, or several columns with commas between them."""
    return _read("group-by", text, lambda written: [_read_name(item) for item in _items(written)])


def read_order(text: str) -> list[OrderBy]:
    """Read `visitors desc`, or several with commas between them."""
    return _read("order-by", text, lambda written: [_order(item) for item in _items(written)])


def _read(option: str, text: str, reader: Callable[[str], Part]) -> Part:
    try:
        return reader(text)
    except ValueError as error:
        raise OperatorError(f"cannot read --{option} {text!r}: {error}") from error


def _filtered_select(text: str, table: Table | None) -> Select:
    select, *conditions = _WHERE.split(text)
    filters = [_filter(condition, table) for condition in conditions]
    return msgspec.structs.replace(_select(select), filters=filters or msgspec.UNSET)


def _step(text: str, table: Table) -> FunnelStep:
    name, *conditions = _WHERE.split(text)
    if not conditions:
        raise ValueError("write it as paid where event_name = purchase")
    return FunnelStep([_filter(condition, table) for condition in conditions], _read_name(name))


def _select(text: str) -> Select:
    found = _SELECT.fullmatch(text)
    if found is None:
        raise ValueError(
            "write it as count, uniq(anonymous_id) or avg(value) as mean, and repeat --select "
            "for more than one"
        )
    field, alias = found["field"] or ALL_ROWS, found["alias"]
    if distinct := _DISTINCT.fullmatch(field):
        raise ValueError(f"write distinct values as uniq({distinct['column']})")
    return Select(
        _read_name(field), found["aggregate"].lower(), None if alias is None else _read_name(alias)
    )


def _filter(text: str, table: Table | None) -> Filter:
    name = _NAME.match(text)
    if name is None:
        raise ValueError("it begins with the name of a column, such as country = DE")
    column, rest = _read_name(name[1]), text[name.end() :]
    found = _OPERATOR.match(rest)
    operator = None if found is None else _operator(found[1], found[2])
    if found is None or operator is None:
        raise ValueError(_explain_operator(column, rest))
    value = rest[found.end() :].strip()
    if operator in PRESENCE_OPERATORS:
        return _presence(column, operator, value)
    is_text = operator in TEXT_OPERATORS or _is_text_column(table, column)
    if operator in LIST_OPERATORS:
        return Filter(column, operator.value, [_value(item, is_text) for item in _list(value)])
    return Filter(column, operator.value, _value(value, is_text))


def _presence(column: str, operator: Operator, value: str) -> Filter:
    if value:
        raise ValueError(f"{operator.value} takes no value")
    return Filter(column, operator.value)


def _having(text: str) -> Having:
    name = _NAME.match(text)
    found = None if name is None else _OPERATOR.match(text[name.end() :])
    operator = None if found is None else _operator(found[1], found[2])
    if name is None or found is None or operator is None:
        raise ValueError("write it as visitors > 10")
    value = _value(text[name.end() + found.end() :].strip(), is_text=False)
    return Having(_read_name(name[1]), operator.value, value)


def _operator(symbol: str | None, word: str | None) -> Operator | None:
    if word is None:
        return SYMBOLS.get(symbol or "")
    return Operator("_".join(re.split(r"[_\s]+", word.lower())))


def _explain_operator(column: str, rest: str) -> str:
    names = [operator.value for operator in Operator]
    known = ", ".join([*SYMBOLS, *names])
    symbol = re.match(r"\s*([=!<>]+)", rest)
    first = symbol[1] if symbol else next(iter(rest.split()), "")
    if not first:
        return f"an operator and a value are missing after {column} (one of {known})"
    if meant := meaning_of(first, OPERATOR_SYNONYMS, names):
        written = " and ".join(_SYMBOLS_BY_NAME.get(name, name) for name in meant)
        return f"{first} is not an operator (did you mean {written}?)"
    return f"{first} is not an operator (one of {known}, with spaces around words)"


def _is_text_column(table: Table | None, name: str) -> bool:
    """Return whether the column's values are text. An unknown column counts as text."""
    column = None if table is None else table.column(name)
    return column is None or column.kind in _TEXT_KINDS


def _value(text: str, is_text: bool) -> Scalar:
    word = _word(text)
    if not word.text and not word.is_quoted:
        raise ValueError("a value is missing; the empty text is written ''")
    if word.is_quoted or is_text:
        return word.text
    try:
        number: Scalar = msgspec.json.decode(word.text, type=int | float | bool)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return word.text
    return number


def _list(text: str) -> list[str]:
    """Split a list, which can be in parentheses as in SQL."""
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    return _items(inner)


def _items(text: str) -> list[str]:
    items: list[str] = _ITEM.findall(text)
    return items


def _order(text: str) -> OrderBy:
    found = _ORDER.fullmatch(text)
    if found is None:
        raise ValueError("a name is missing; write it as visitors desc or path")
    direction = found["direction"]
    return OrderBy(_read_name(found["name"]), None if direction is None else direction.lower())


def _read_name(text: str) -> str:
    word = _word(text)
    if not word.text:
        raise ValueError("a name is missing")
    return word.text


def _word(text: str) -> _Word:
    text = text.strip()
    if not text.startswith(("'", '"')):
        return _Word(text, is_quoted=False)
    if not re.fullmatch(_QUOTED, text, re.DOTALL):
        raise ValueError(f"the quotes in {text} do not match; double a quote within quotes")
    quote = text[0]
    return _Word(text[1:-1].replace(quote * 2, quote), is_quoted=True)
