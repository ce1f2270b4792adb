"""`properties.KEY` in SQL: one text for each JSON value, equal for equal values.

    missing, null        NULL
    a text               a quotation mark, then the text itself: "café
    a number             its digits: 5 (also for 5.0 and 5e0), 0.1, -12, 1e30
    true, false          true, false
    an object or array   its JSON text without blanks

The first character tells the type, so filters, groups and aggregates all work on this one text.
"""

from millrace.model.catalog import Column, property_key
from millrace.model.plan import FilterScalar
from millrace.ports.store import Dialect
from millrace.query.long_numbers import readable
from millrace.query.parameters import Parameters

_TEXT_MARK = '"'
_DOT = "."

# JSONExtractRaw puts integers past 64 bits in quotes, as if they were texts of these digits. So
# where its answer has such digits, all texts of the document that are these digits get a mark, it
# is asked again, and what comes without the mark is a number. (The other parser that ClickHouse
# has knows such numbers, and is off in the last digit of others.)
_LONG_DIGITS = "arrayDistinct(extractAll({raw}, '\"-?[1-9][0-9]{{18,}}\"'))"
_MARKED = """arrayFold(
    (document, digits) -> replaceAll(document, digits, concat('"(text)', substring(digits, 2))),
    {long},
    properties
)"""
_JSON = """if(length({raw}) <= 20 OR empty({long}), {raw}, arrayFold(
    (json, digits) -> replaceAll(
        replaceAll(json, digits, trim(BOTH '"' FROM digits)),
        concat('"(text)', substring(digits, 2)),
        digits
    ),
    {long},
    {again}
))"""
_VALUE = """multiIf(
    {json} IN ('', 'null'), NULL,
    {json} = '-0', '0',
    startsWith({json}, '"'), concat('"', JSONExtractString({json})),
    {json}
)"""


class PropertyColumns:
    """Defines each property of a query once, and tells how it is called in the statement."""

    def __init__(self, parameters: Parameters, dialect: Dialect) -> None:
        self._parameters = parameters
        self._dialect = dialect
        self._aliases: dict[str, str] = {}
        self.definitions: list[str] = []

    def expression(self, column: Column) -> str:
        """Return the name of a property's value, defining it at the first use."""
        if column.name not in self._aliases:
            alias = f"property_{len(self._aliases)}"
            self._aliases[column.name] = alias
            self._define(alias, property_key(column.name) or "")
        return self._aliases[column.name]

    def _define(self, alias: str, key: str) -> None:
        """Look for the very key first, then for the nested one.

        How many names a dotted key has is part of the statement's shape; the names are bound.
        """
        places = [[self._parameters.bind(key, "String")]]
        if _DOT in key:
            places.append([self._parameters.bind(part, "String") for part in key.split(_DOT)])
        steps = self._steps(alias, places)
        if self._dialect.writes_definitions_out:
            self.definitions.append(_one_within_the_other(steps))
        else:
            self.definitions += [f"{sql} AS {name}" for name, sql in steps]

    def _steps(self, alias: str, places: list[list[str]]) -> list[tuple[str, str]]:
        """Return names and their SQL, each of it over the names before; the last is the value."""
        raw, long, marked, json = (f"{alias}_{part}" for part in ("raw", "long", "marked", "json"))
        document, again = "properties", marked
        repaired: list[tuple[str, str]] = []
        repaired_again: list[tuple[str, str]] = []
        if self._dialect.loses_long_numbers:
            document, again = f"{alias}_document", f"{alias}_again"
            repaired = [(document, readable("properties"))]
            repaired_again = [(again, readable(marked))]
        return [
            *repaired,
            (raw, _extract(document, places)),
            (long, _LONG_DIGITS.format(raw=raw)),
            (marked, _MARKED.format(long=long)),
            *repaired_again,
            (json, _JSON.format(raw=raw, long=long, again=_extract(again, places))),
            (alias, _VALUE.format(json=json)),
        ]


def _one_within_the_other(steps: list[tuple[str, str]]) -> str:
    """Write steps as one expression that has each of them once, however often its name is used."""
    *named, (alias, sql) = steps
    for name, step in reversed(named):
        sql = f"arrayMap({name} -> {sql}, [{step}])[1]"
    return f"{sql} AS {alias}"


def number_of(value: str) -> str:
    """Return the SQL of a property's number, NULL for all other values."""
    return f"toFloat64OrNull({value})"


def text_of(value: str) -> str:
    """Return the SQL of a property's text, NULL for all other values."""
    return f"if(startsWith({value}, '\"'), substring({value}, 2), NULL)"


def value_text(value: FilterScalar) -> str | None:
    """Return the text of a filter's value, as the SQL has it; None for numbers with a fraction.

    Those, and numbers past 64 bits that came with an exponent, are compared as numbers.
    """
    if isinstance(value, str):
        return _TEXT_MARK + value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else None


def _extract(document: str, places: list[list[str]]) -> str:
    *literal, last = [f"JSONExtractRaw({document}, {', '.join(place)})" for place in places]
    if not literal:
        return last
    return f"if(JSONHas({document}, {places[0][0]}), {literal[0]}, {last})"
