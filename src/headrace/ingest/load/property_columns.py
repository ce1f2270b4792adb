"""Derives the columns of a row from an event's properties, path and URL.

The fast path is one typed decode, which accepts only values of the right types and lengths.
Properties that it rejects are promoted value by value. Neither makes objects of properties that are
not promoted.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypedDict, cast
from urllib.parse import unquote_plus

import msgspec
from msgspec import Meta, Raw

from headrace.model.catalog import PROMOTED_COLUMNS, Column, Kind

_KINDS = {column.name: column.kind for column in PROMOTED_COLUMNS}
_UTM_LIMITS = {c.name: c.max_length for c in PROMOTED_COLUMNS if c.name.startswith("utm_")}
_TEXT_LIMITS = {
    column.name: column.max_length
    for column in PROMOTED_COLUMNS
    if column.kind is Kind.TEXT and column.name not in {"path", "url"}
}
"""Of the texts that are truncated as they were sent. A path or URL is normalized before that."""

_Number: TypeAlias = (
    Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)] | None  # finite
)
_TYPES: Mapping[Kind, Any] = {
    Kind.TEXT: str | None,
    Kind.NUMBER: _Number,
}

Promoted: TypeAlias = dict[str, Any]
"""An event's values of `PROMOTED_COLUMNS`, by name; "" and None count as missing.

Texts of properties but `path` and `url` are within the limits of their columns.
"""


def _limited_type(column: Column) -> Any:  # noqa: ANN401 - a type, made at run time
    limit = _TEXT_LIMITS.get(column.name)
    if limit is None:
        return _TYPES[column.kind]
    text: Any = Annotated[str, Meta(max_length=limit)]
    return text | None


_typed_dict = cast("Callable[..., Any]", TypedDict)  # mypy takes only one that is written out
_DECODER: msgspec.json.Decoder[Promoted] = msgspec.json.Decoder(
    _typed_dict("_Promoted", {c.name: _limited_type(c) for c in PROMOTED_COLUMNS}, total=False)
)
_RAW_DECODER: msgspec.json.Decoder[Mapping[str, Raw]] = msgspec.json.Decoder(
    _typed_dict("_Raw", {c.name: Raw for c in PROMOTED_COLUMNS}, total=False)
)
_VALUE_DECODERS: Mapping[Kind, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(type_) for kind, type_ in _TYPES.items()
}


def promote_batch(
    properties: Sequence[bytes], top_levels: Sequence[Promoted | None]
) -> list[Promoted]:
    """Return the promoted values of events, of the right types, from properties and top level."""
    try:
        rows = [_DECODER.decode(text) if text else {} for text in properties]
    except msgspec.MsgspecError:
        rows = [promote_properties(text) for text in properties]
    if any(top_levels):
        rows = [
            {**row, **top_level} if top_level else row
            for row, top_level in zip(rows, top_levels, strict=True)
        ]
    return rows


def promote_properties(properties: bytes) -> Promoted:
    """Return the promoted values of one event's properties."""
    if not properties:
        return {}
    try:
        return _DECODER.decode(properties)
    except msgspec.MsgspecError:
        return _truncate(_promote_one_by_one(properties))


def _truncate(promoted: Promoted) -> Promoted:
    """Truncate texts to the limits of their columns."""
    return {
        name: value[: _TEXT_LIMITS[name]] if value and name in _TEXT_LIMITS else value
        for name, value in promoted.items()
    }


def _promote_one_by_one(properties: bytes) -> Promoted:
    promoted = {
        name: _decode_or_none(_VALUE_DECODERS[_KINDS[name]], bytes(raw))
        for name, raw in _RAW_DECODER.decode(properties).items()
    }
    return {name: value for name, value in promoted.items() if value is not None}


def _decode_or_none(decoder: msgspec.json.Decoder[Any], raw: bytes) -> str | float | None:
    try:
        value: str | float | None = decoder.decode(raw)
    except msgspec.MsgspecError:
        return None
    return value


def normalize_url(path: str, url: str) -> tuple[str, str]:
    """Return a row's path and URL: splits an absolute path, takes a missing one from the URL."""
    if path[:8].lower().startswith(("http://", "https://")):
        return path_of(path), url or path
    if url and not path:
        return path_of(url), url
    return path, url


def path_of(url: str) -> str:
    """Return a URL's path without query and fragment, not decoded; the root's is `/`.

    Anything without `//` before a host is a path.
    """
    without_query = url.partition("#")[0].partition("?")[0]
    scheme, slashes, rest = without_query.partition("//")
    if not slashes or (scheme and not (scheme.endswith(":") and "/" not in scheme)):
        return without_query
    return rest[rest.find("/") :] if "/" in rest else "/"


def utm_parameters(url: str) -> Mapping[str, str]:
    """Return the utm values of a URL's query, form-decoded and truncated to their columns' limits.

    The first of repeated names wins.
    """
    parameters: dict[str, str] = {}
    query = url.partition("#")[0].partition("?")[2]
    if "utm_" not in query and "%" not in query:
        return parameters
    for part in query.split("&"):
        name, _, value = part.partition("=")
        name = _decode_form(name)
        if name in _UTM_LIMITS and name not in parameters:
            parameters[name] = _decode_form(value)[: _UTM_LIMITS[name]]
    return parameters


def _decode_form(text: str) -> str:
    return unquote_plus(text) if "%" in text or "+" in text else text
