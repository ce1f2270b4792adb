"""What of an event's properties, path and URL becomes columns of its row.

The fast way is one typed decode that accepts only what can be lifted as it is. What it refuses
(a wrong type, a null, a text that is too long) is looked at value by value.
"""

import json
import math
import sys
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, cast
from urllib.parse import unquote_plus

import msgspec
from msgspec import Meta, Struct

from millrace.model.catalog import LIFTED_COLUMNS, Column, Kind
from millrace.model.event import Event

_PAGE_NAMES = frozenset({"path", "url"})  # cut only when all else was taken from them
_BY_NAME = {column.name: column for column in LIFTED_COLUMNS}
_CAMPAIGN_LIMITS = {c.name: c.max_length for c in LIFTED_COLUMNS if c.name.startswith("utm_")}
_Number: TypeAlias = (
    Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)] | None  # finite
)


def _field(column: Column) -> tuple[str, Any, Any]:
    if column.kind is Kind.NUMBER:
        return column.name, _Number, None
    if column.name in _PAGE_NAMES:
        return column.name, str, ""
    return column.name, Annotated[str, Meta(max_length=column.max_length)], ""


Lifted: TypeAlias = Any
"""A value for each of `LIFTED_COLUMNS`, as attributes; "" and None where there was none.

Texts are within their columns' limits, but for `path` and `url`.
"""

_Lifted: type[Struct] = msgspec.defstruct(
    "Lifted", [_field(column) for column in LIFTED_COLUMNS], gc=False
)
_DECODER = msgspec.json.Decoder(_Lifted)
_ANY_DECODER = msgspec.json.Decoder(dict[str, Any])

NOTHING_LIFTED: Lifted = _Lifted()
"""Stands in every row of an event that has nothing to lift."""


def lift(event: Event) -> Lifted:
    """Return what an event's properties and top level bring for columns, right types only."""
    try:
        if not event.lifted:
            return _DECODER.decode(event.properties) if event.properties else NOTHING_LIFTED
        if not event.properties:
            return msgspec.convert(event.lifted, _Lifted)
    except msgspec.MsgspecError:
        pass
    return _lift_one_by_one(event)


def _lift_one_by_one(event: Event) -> Lifted:
    values: dict[str, Any] = {}
    for source in (_read(event.properties), event.lifted or {}):
        for name, value in source.items():
            column = _BY_NAME.get(name)
            if column is not None and (lifted := _right_typed(column, value)) is not None:
                values[name] = lifted
    return _Lifted(**values)


def _read(properties: bytes) -> Mapping[str, Any]:
    if not properties:
        return {}
    try:
        return _ANY_DECODER.decode(properties)
    except msgspec.MsgspecError:  # a number beyond all floats, which is infinite to Python's reader
        return cast("dict[str, Any]", json.loads(properties, parse_int=float))


def _right_typed(column: Column, value: object) -> str | float | None:
    if column.kind is Kind.TEXT:
        if not isinstance(value, str) or not value:
            return None
        return value if column.name in _PAGE_NAMES else value[: column.max_length]
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def settle_page(path: str, url: str) -> tuple[str, str]:
    """Return a row's path and URL: an absolute path is split, a missing one comes from the URL."""
    if path.startswith(("http://", "https://")):
        return path_of(path), url or path
    if url and not path:
        return path_of(url), url
    return path, url


def path_of(url: str) -> str:
    """Return a URL's path without query and fragment, as it is written; the root's is `/`.

    Anything without `//` in front of a host is taken for a path.
    """
    plain = url.partition("#")[0].partition("?")[0]
    scheme, slashes, behind = plain.partition("//")
    if not slashes or (scheme and not (scheme.endswith(":") and "/" not in scheme)):
        return plain
    return behind[behind.find("/") :] if "/" in behind else "/"


def lift_campaign(lifted: Lifted, url: str) -> Lifted:
    """Fill the utm values that are missing from the URL's query."""
    found = campaign_of(url)
    missing = {name: value for name, value in found.items() if not getattr(lifted, name)}
    return msgspec.structs.replace(lifted, **missing) if missing else lifted


def campaign_of(url: str) -> Mapping[str, str]:
    """Return the utm values of a URL's query, form-decoded, cut to their columns' limits.

    Of a name that comes twice the first counts.
    """
    found: dict[str, str] = {}
    query = url.partition("#")[0].partition("?")[2]
    if "utm_" not in query and "%" not in query:
        return found
    for part in query.split("&"):
        name, _, value = part.partition("=")
        name = _form_decoded(name)
        if name in _CAMPAIGN_LIMITS and name not in found:
            found[name] = _form_decoded(value)[: _CAMPAIGN_LIMITS[name]]
    return found


def _form_decoded(text: str) -> str:
    return unquote_plus(text) if "%" in text or "+" in text else text
