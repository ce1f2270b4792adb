"""`properties.KEY` in SQL: one text for each JSON value, equal for equal values.

    missing, null        NULL
    a text               the text itself between quotation marks, with nothing escaped: "café"
    a number             its digits: 5 (also for 5.0 and 5e0), 0.1, -12, 1e30
    true, false          true, false
    an object or array   its JSON text without blanks

The first character tells the type, so filters, groups and aggregates all work on this one text.
"""

from typing import Final, NamedTuple

import msgspec

from headrace.model.catalog import Column, property_key
from headrace.model.plan import FilterScalar
from headrace.ports.store import Dialect
from headrace.query.sql.builder import INDENT, Parameters

_PART: Final = r"""'"(?:[^"\\\\]|\\\\.)*"|[^"]+'"""


_DIGITS: Final = r"'(^|[:,\\[])(-?[1-9][0-9]{18,})([,}\\]]|$)'"


_QUOTED_DIGITS: Final = r"""'\\1"\\2"\\3'"""


_QUOTE_BIG_INTEGERS: Final = """if(match({document}, '[0-9]{{19}}'), arrayStringConcat(arrayMap(
    part -> if(
        startsWith(part, '"'),
        part,
        replaceRegexpAll(replaceRegexpAll(part, {digits}, {quoted}), {digits}, {quoted})
    ),
    extractAll({document}, {part})
)), {document})"""


_QUOTATION_MARK = '"'
_DOT = "."
_UNSEARCHABLE_PREFIXES = (":", ",", "]")

# Most documents hold neither an escape nor an object within. In these a key stands at one place, so
# its value is found by searching, without reading the document: documents have no blanks, and
# `"key":` cannot be within a text whose quotation marks would have to be escaped. It can reach from
# the end of one text to the beginning of the next, so keys that are like what may stand between
# texts are not searched for.
_SIMPLE_ALIAS = "properties_flat"
_FALSE = "0"
_IS_SIMPLE = (
    " + ".join(f"position(properties, '{token}')" for token in (r"\\", ':{"', ',{"', '[{"'))
    + " = 0"
)
_EXTRACTED = "simpleJSONExtractRaw(properties, {key})"
# Nothing, a text, true, false and small whole numbers are written in one way only. To put together
# what comes from two places takes as long as to find it, so the first condition is for most rows:
# that there is nothing or, as of all marks it is the least, a quotation mark.
_VALUE = """if(
    bitAnd({is_simple}, ascii({extracted}) <= 34),
    nullIf({extracted}, ''),
    if(
        {is_simple} AND ({extracted} IN ('true', 'false') OR toUInt32OrZero({extracted}) > 0),
        {extracted},
        {full_parse}
    )
)"""
_NUMBER = "if({is_simple}, toFloat64OrNull({extracted}), toFloat64OrNull({value}))"
_SUM_OPERAND = "if({is_simple}, toFloat64OrZero({extracted}), ifNull(toFloat64OrNull({value}), 0))"

# JSONExtractRaw puts integers past 64 bits in quotes, as if they were texts of these digits. So
# where its answer has such digits, all texts of the document that are these digits get a mark, it
# is asked again, and what comes without the mark is a number. (The other parser that ClickHouse
# has knows such numbers, and is off in the last digit of others.)
_MAX_SHORT_LENGTH = 20
_LONG_DIGITS = "arrayDistinct(extractAll(raw, '\"-?[1-9][0-9]{18,}\"'))"
_TAGGED = """arrayFold(
    (text, digits) -> replaceAll(text, digits, concat('"(text)', substring(digits, 2))),
    long,
    properties
)"""
_UNTAGGED = """arrayFold(
    (text, digits) -> replaceAll(
        replaceAll(text, digits, trim(BOTH '"' FROM digits)),
        concat('"(text)', substring(digits, 2)),
        digits
    ),
    long,
    {again}
)"""
_NORMALIZED = """multiIf(
    json IN ('', 'null'), NULL,
    json = '-0', '0',
    startsWith(json, '"'), concat('"', JSONExtractString(json), '"'),
    json
)"""


class _Property(NamedTuple):
    """A property of a statement: its name, and the places of its key in JSON and of its names."""

    alias: str
    key: str
    escaped_key: str
    key_paths: list[list[str]]

    @property
    def extracted(self) -> str:
        return f"{self.alias}_found"

    @property
    def is_simple(self) -> str:
        """SQL that is true where the key may be searched for."""
        return _FALSE if self.key.startswith(_UNSEARCHABLE_PREFIXES) else _SIMPLE_ALIAS


class PropertyColumns:
    """Defines each property of a query once, and tells how it is called in the statement."""

    def __init__(self, parameters: Parameters, dialect: Dialect) -> None:
        self._parameters = parameters
        self._dialect = dialect
        self._properties: dict[str, _Property] = {}
        self._defined: set[str] = set()
        self.definitions: list[str] = []

    def value(self, column: Column) -> str:
        """Return the name of a property's value, defining it at the first use."""
        json_property = self._property(column)
        if json_property.alias not in self._defined:
            full_parse = _reindent(self._full_parse(json_property.key_paths), 2)
            self._define(_SIMPLE_ALIAS, _IS_SIMPLE)
            self._define(json_property.extracted, _EXTRACTED.format(key=json_property.escaped_key))
            self._define(
                json_property.alias,
                _VALUE.format(
                    is_simple=json_property.is_simple,
                    extracted=json_property.extracted,
                    full_parse=full_parse,
                ),
            )
        return json_property.alias

    def number(self, column: Column) -> str:
        """Return the name of a property's number, NULL for all other values.

        Where nothing else is asked of the property, the text of its value is made for few rows.
        """
        return self._define_numeric(column, "number", _NUMBER)

    def sum_operand(self, column: Column) -> str:
        """Return the name of what a property adds to a sum: its number, 0 for all other values."""
        return self._define_numeric(column, "addend", _SUM_OPERAND)

    def _define_numeric(self, column: Column, name: str, sql: str) -> str:
        json_property, value = self._property(column), self.value(column)
        alias = f"{json_property.alias}_{name}"
        self._define(
            alias,
            sql.format(
                is_simple=json_property.is_simple, extracted=json_property.extracted, value=value
            ),
        )
        return alias

    def _property(self, column: Column) -> _Property:
        if column.name not in self._properties:
            alias = f"property_{len(self._properties)}"
            key = property_key(column.name) or ""
            self._properties[column.name] = self._bind(alias, key)
        return self._properties[column.name]

    def _bind(self, alias: str, key: str) -> _Property:
        """Bind the very key and, behind it, the names of the nested one.

        How many names a dotted key has is part of the statement's shape; the names are bound.
        """
        key_paths = [[self._parameters.bind(key, "String")]]
        if _DOT in key:
            key_paths.append([self._parameters.bind(part, "String") for part in key.split(_DOT)])
        escaped_key = self._parameters.bind(msgspec.json.encode(key)[1:-1].decode(), "String")
        return _Property(alias, key, escaped_key, key_paths)

    def _define(self, name: str, sql: str) -> None:
        """Define a name, over those before it, where that is not done yet."""
        if name not in self._defined:
            self._defined.add(name)
            self.definitions.append(f"{sql} AS {name}")

    def _full_parse(self, key_paths: list[list[str]]) -> str:
        """Return the SQL of a value that is right for all documents."""
        again = _reindent(_let("marked", _TAGGED, self._extract("marked", key_paths)), 1)
        untagged = f"if(empty(long), raw, {_UNTAGGED.format(again=again)})"
        json = (
            f"if(length(raw) <= {_MAX_SHORT_LENGTH}, raw, {_let('long', _LONG_DIGITS, untagged)})"
        )
        return _let("raw", self._extract("properties", key_paths), _let("json", json, _NORMALIZED))

    def _extract(self, document: str, key_paths: list[list[str]]) -> str:
        """Return the SQL of the JSON text at the first place that is there."""
        if self._dialect.needs_big_int_workaround:
            return _let("document", quote_big_integers(document), _extract("document", key_paths))
        return _extract(document, key_paths)


def _let(name: str, value: str, sql: str) -> str:
    """Return SQL in which a name stands for a value that is made once.

    A name of WITH stands for its expression wherever it is used: names that build upon each other
    are planned, and made for each row, many times over.
    """
    return f"arrayMap(\n    {name} -> {_reindent(sql, 1)},\n    [{_reindent(value, 1)}]\n)[1]"


def _reindent(sql: str, steps: int) -> str:
    """Move the lines of a part that stands so many steps to the right."""
    return sql.replace("\n", "\n" + steps * INDENT)


def string_value(value: str) -> str:
    """Return the SQL of a property's text, NULL for all other values."""
    return f"if(startsWith({value}, '\"'), substring({value}, 2, -1), NULL)"


def canonical_text(value: FilterScalar) -> str | None:
    """Return the text of a filter's value, as the SQL has it; None for numbers with a fraction.

    Those, and numbers past 64 bits that came with an exponent, are compared as numbers.
    """
    if isinstance(value, str):
        return _QUOTATION_MARK + value + _QUOTATION_MARK
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else None


def _extract(document: str, key_paths: list[list[str]]) -> str:
    *literal, last = [f"JSONExtractRaw({document}, {', '.join(path)})" for path in key_paths]
    if not literal:
        return last
    return f"if(JSONHas({document}, {key_paths[0][0]}), {literal[0]}, {last})"


def quote_big_integers(document: str) -> str:
    """Return the SQL of a document with its long digits in quotes.

    They are looked for twice, because two numbers of a list share the comma between them.
    """
    return _QUOTE_BIG_INTEGERS.format(
        document=document, part=_PART, digits=_DIGITS, quoted=_QUOTED_DIGITS
    )
