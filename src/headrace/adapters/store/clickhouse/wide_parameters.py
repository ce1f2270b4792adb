"""Splits parameters that exceed a server's limit into pieces that the server concatenates.

A server rejects a form field above 128 KiB. The text of such a statement depends on the length of
the value, but not on its content.

This happens here and not in the compiler: the limit belongs to the HTTP interface of servers, chDB
has none, and the compiler's SQL is the same for any value. Only statements with a long value are
rewritten; for all others the cost is the sum of the values' lengths.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from headrace.adapters.store.dialect.parameters import EncodedParameters, encode_parameters

MAX_PIECE_CHARACTERS: Final = 16_384
"""Length of a piece before encoding: a character takes at most four bytes in UTF-8, or two as an
escape."""

_ARRAY = re.compile(r"Array\((\w+)\)")
_NUMBER_SIZE: Final = 24
_SEPARATOR_SIZE: Final = 3

_Bind = Callable[[object, str], str]


def fit_parameters(sql: str, values: Mapping[str, object]) -> tuple[str, EncodedParameters]:
    """Return a statement and its encoded parameters, each short enough for a server."""
    fitting: dict[str, object] = {}
    for name, value in values.items():
        if _size(value) <= MAX_PIECE_CHARACTERS:
            fitting[name] = value
        else:
            sql = _bind_in_pieces(sql, name, value, fitting)
    return sql, encode_parameters(fitting)


def _bind_in_pieces(sql: str, name: str, value: object, bound_values: dict[str, object]) -> str:
    placeholder = re.search(rf"\{{{re.escape(name)}:([\w()]+)\}}", sql)
    if placeholder is None:
        return sql  # nothing reads it

    def bind(piece: object, kind: str) -> str:
        piece_name = f"{name}_{len(bound_values)}"
        bound_values[piece_name] = piece
        return f"{{{piece_name}:{kind}}}"

    array = _ARRAY.fullmatch(placeholder[1])
    if array is None:
        return sql.replace(placeholder[0], _text(str(value), bind))
    parts = _array(cast("Sequence[Any]", value), array[1], bind)
    return sql.replace(placeholder[0], f"arrayConcat({', '.join(parts)})")


def _text(value: str, bind: _Bind) -> str:
    starts = range(0, len(value), MAX_PIECE_CHARACTERS)
    pieces = (bind(value[start : start + MAX_PIECE_CHARACTERS], "String") for start in starts)
    return f"concat({', '.join(pieces)})"


def _array(values: Sequence[Any], kind: str, bind: _Bind) -> Iterator[str]:
    piece: list[Any] = []
    size = 0
    for value in values:
        value_size = _size(value)
        if size + value_size > MAX_PIECE_CHARACTERS:
            yield bind(piece, f"Array({kind})")
            piece, size = [], 0
        if value_size > MAX_PIECE_CHARACTERS:
            yield f"[{_text(value, bind)}]"
            continue
        piece.append(value)
        size += value_size
    yield bind(piece, f"Array({kind})")


def _size(value: object) -> int:
    match value:
        case str():
            return len(value) + _SEPARATOR_SIZE
        case list() | tuple():
            return sum(map(_size, cast("Sequence[Any]", value)))
        case _:
            return _NUMBER_SIZE
