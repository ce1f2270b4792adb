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

from headrace.formats.simple_properties import IS_SIMPLE_COLUMN
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


_QUOTE = '"'
_DOT = "."
_UNSEARCHABLE_PREFIXES = (":", ",", "]")

# Most documents are simple. In these a key occurs only once, so a text search finds its value
# without parsing the document: documents have no blanks, and `"key":` cannot occur within a text,
# whose quotation marks would be escaped. A match can reach from the end of one text to the start of
# the next, so keys that begin like a separator of texts are not searched for.
_FALSE = "0"
_EXTRACTED = "simpleJSONExtractRaw(properties, {key})"
# A missing value, a text, true, false and small whole numbers have one spelling only, so the
# extracted text is the value. Merging the results of two branches costs as much as extracting, so
# the first condition covers most rows: a missing value or a text. `<= 34` tests for both, because
# no first character of a JSON value is less than the quotation mark (34), and "" has the code 0.
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

# JSONExtractRaw quotes integers past 64 bits, as if they were texts of these digits. If its result
# has such digits, all texts of the document that consist of them get a prefix, the value is
# extracted again, and digits without the prefix are a number. A text that has the prefix already
# gets it once more. Keys, which a colon follows, stay as they are. (ClickHouse's other JSON parser
# reads such numbers, but is off in the last digit of others.)
_MAX_SHORT_LENGTH = 20
_NO_KEY: Final = r"([,}\\]]|$)"
_DIGITS_OF_TEXT: Final = r"((?:\\(text\\))*-?[1-9][0-9]{18,})"
_TEXT: Final = f"""'"{_DIGITS_OF_TEXT}"{_NO_KEY}'"""
_PREFIXED_TEXT: Final = f"""'"\\\\(text\\\\){_DIGITS_OF_TEXT}"{_NO_KEY}'"""
_QUOTED_NUMBER: Final = f"""'"(-?[1-9][0-9]{{18,}})"{_NO_KEY}'"""
# Empty where the value has no such digits. What does not depend on `raw` would be computed for each
# row, whatever the branch.
_DOCUMENT_WITH_LONG: Final = (
    f"if(length(raw) > {_MAX_SHORT_LENGTH} AND match(raw, {_QUOTED_NUMBER}), properties, '')"
)
_TAGGED: Final = f"""replaceRegexpAll(document, {_TEXT}, '"(text)\\\\1"\\\\2')"""
_UNTAGGED: Final = """replaceRegexpAll(
    replaceRegexpAll({again}, {number}, '\\\\1\\\\2'),
    {text},
    '"\\\\1"\\\\2'
)"""
_NORMALIZED = """multiIf(
    json IN ('', 'null'), NULL,
    json = '-0', '0',
    startsWith(json, '"'), concat('"', JSONExtractString(json), '"'),
    json
)"""


class _Property(NamedTuple):
    """A property in a statement.

    `alias` is its SQL name. `escaped_key` is the placeholder of the key as JSON escapes it;
    `key_paths` has the placeholders of the whole key and of the names of a nested one.
    """

    alias: str
    key: str
    escaped_key: str
    key_paths: list[list[str]]

    @property
    def extracted(self) -> str:
        return f"{self.alias}_found"

    @property
    def is_simple(self) -> str:
        """SQL of the condition for a search to find the value."""
        return _FALSE if self.key.startswith(_UNSEARCHABLE_PREFIXES) else IS_SIMPLE_COLUMN


class PropertyColumns:
    """The properties of a statement; the first use of one adds its `definitions`, for WITH."""

    def __init__(self, parameters: Parameters, dialect: Dialect) -> None:
        self._parameters = parameters
        self._dialect = dialect
        self._properties: dict[str, _Property] = {}
        self._defined: set[str] = set()
        self.definitions: list[str] = []

    def value(self, column: Column) -> str:
        """Return the SQL name of a property's value, which the first use defines."""
        json_property = self._property(column)
        if json_property.alias not in self._defined:
            full_parse = _reindent(self._full_parse(json_property.key_paths), 2)
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
        """Return the SQL name of a property's number, NULL for all other values.

        If a statement uses nothing else of the property, few rows need the text of its value.
        """
        return self._define_numeric(column, "number", _NUMBER)

    def sum_operand(self, column: Column) -> str:
        """Return the SQL name of a property's summand: its number, 0 for all other values."""
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
        """Bind the whole key and, for a dotted one, the names of the nested key.

        The number of names is part of the statement's shape; the names are values.
        """
        key_paths = [[self._parameters.bind(key, "String")]]
        if _DOT in key:
            key_paths.append([self._parameters.bind(part, "String") for part in key.split(_DOT)])
        escaped_key = self._parameters.bind(msgspec.json.encode(key)[1:-1].decode(), "String")
        return _Property(alias, key, escaped_key, key_paths)

    def _define(self, name: str, sql: str) -> None:
        """Define a name once; its SQL may use the names defined before it."""
        if name not in self._defined:
            self._defined.add(name)
            self.definitions.append(f"{sql} AS {name}")

    def _full_parse(self, key_paths: list[list[str]]) -> str:
        """Return the SQL that parses the value from any document."""
        again = _reindent(_let("tagged", _TAGGED, self._extract("tagged", key_paths)), 1)
        untagged = _UNTAGGED.format(again=again, number=_QUOTED_NUMBER, text=_PREFIXED_TEXT)
        json = _let("document", _DOCUMENT_WITH_LONG, f"if(document = '', raw, {untagged})")
        return _let("raw", self._extract("properties", key_paths), _let("json", json, _NORMALIZED))

    def _extract(self, document: str, key_paths: list[list[str]]) -> str:
        """Return the SQL of the JSON text at the first of the paths that exists."""
        if self._dialect.needs_big_int_workaround:
            return _let("quoted", quote_big_integers(document), _extract("quoted", key_paths))
        return _extract(document, key_paths)


def _let(name: str, value: str, sql: str) -> str:
    """Return SQL in which a name is bound to a value that is computed once.

    A name of WITH would be replaced by its expression at every use: names that build on each other
    would be planned, and computed for each row, many times.
    """
    return f"arrayMap(\n    {name} -> {_reindent(sql, 1)},\n    [{_reindent(value, 1)}]\n)[1]"


def _reindent(sql: str, steps: int) -> str:
    """Indent the lines of a part, except the first, by some steps."""
    return sql.replace("\n", "\n" + steps * INDENT)


def string_value(value: str) -> str:
    """Return the SQL of the text within a property's value, NULL for other types."""
    return f"if(startsWith({value}, '\"'), substring({value}, 2, -1), NULL)"


def canonical_text(value: FilterScalar) -> str | None:
    """Return a filter's value in the form of the SQL value; None for numbers with a fraction.

    Those, and numbers past 64 bits that were sent with an exponent, are compared as numbers.
    """
    if isinstance(value, str):
        return _QUOTE + value + _QUOTE
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
    """Return the SQL of a document in which integers of 19 or more digits are quoted.

    The replacement runs twice, because adjacent numbers of a list share the comma between them.
    """
    return _QUOTE_BIG_INTEGERS.format(
        document=document, part=_PART, digits=_DIGITS, quoted=_QUOTED_DIGITS
    )
