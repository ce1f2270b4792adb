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
from millrace.query.parameters import Parameters

_TEXT_MARK = '"'
_DOT = "."

# JSONExtractRaw puts integers past 64 bits in quotes, as if they were texts of these digits. They
# are numbers if they are still found after all such texts of the document were emptied.
_VALUE = """multiIf(
    {raw} IN ('', 'null'), NULL,
    {raw} = '-0', '0',
    NOT startsWith({raw}, '"'), {raw},
    length({raw}) > 20 AND match({raw}, '^"-?[1-9][0-9]+"$') AND {unmasked} = {raw},
        trim(BOTH '"' FROM {raw}),
    concat('"', JSONExtractString({raw}))
)"""


class PropertyColumns:
    """Defines each property of a query once, and tells how it is called in the statement."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
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
        raw, masked, unmasked = f"{alias}_raw", f"{alias}_masked", f"{alias}_unmasked"
        self.definitions += [
            f"{_extract('properties', places)} AS {raw}",
            f"replaceAll(properties, {raw}, '\"\"') AS {masked}",
            f"{_extract(masked, places)} AS {unmasked}",
            f"{_VALUE.format(raw=raw, unmasked=unmasked)} AS {alias}",
        ]


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
