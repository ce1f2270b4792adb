"""Encodes query values as the text of ClickHouse's bound parameters.

ClickHouse reads the text of `{name:Type}` as a field of a tab-separated file, so control
characters and backslashes of a string are escaped; strings within an array are quoted literals.
"""

from collections.abc import Mapping, Sequence
from typing import NewType, cast

EncodedParameters = NewType("EncodedParameters", dict[str, str])
"""Parameters by name, ready to be bound."""

FIELD_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        "\t": "\\t",
        "\n": "\\n",
        "\r": "\\r",
        "\0": "\\0",
        "\b": "\\b",
        "\f": "\\f",
    }
)
"""The escapes of a tab-separated field, which a literal also understands."""

_LITERAL_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'"})
_INTEGERS = range(-(2**63), 2**63)


def encode_parameters(values: Mapping[str, object]) -> EncodedParameters:
    """Encode values by their Python types: str, int, float, bool, or a list or tuple of one type.

    `{name:String}`, `{name:Int64}`, `{name:Float64}`, `{name:Bool}` and arrays of these then
    evaluate to the same values. Raises `TypeError` for other types.
    """
    return EncodedParameters({name: _encode(value) for name, value in values.items()})


def quote_literal(text: str) -> str:
    """Return a trusted text as an SQL string literal."""
    return f"'{text.translate(_LITERAL_ESCAPES)}'"


def _encode(value: object) -> str:
    match value:
        case str():
            return value.translate(FIELD_ESCAPES)
        case bool() | int() | float():
            return write_number(value)
        case list() | tuple():
            elements = cast("Sequence[object]", value)  # `_element` checks each type
            return f"[{','.join(map(_element, elements))}]"
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be bound as a parameter")


def _element(value: object) -> str:
    match value:
        case str():
            return quote_literal(value)
        case bool() | int() | float():
            return write_number(value)
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be an element of an array parameter")


def write_number(value: float) -> str:
    """Return a number or a Boolean as text, which parameters and literals share."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value not in _INTEGERS:
        # ClickHouse would let it overflow where it reads an integer. From its digits, because
        # those of an integer past doubles make infinity, and the integer itself an error.
        return repr(float(repr(value)))
    return repr(value)
