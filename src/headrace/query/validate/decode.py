"""From the bytes of a body to a `wire.QueryRequest`: JSON, known keys, right types, nothing more.

The rules stand in the wire structs; msgspec checks them, and its errors are put into sentences.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from headrace.base.errors import InvalidQuery, QueryFault
from headrace.model import wire
from headrace.query.validate.suggest import did_you_mean_one_of, likely_meant, quoted

_DECODER = msgspec.json.Decoder(wire.QueryRequest)

_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING_KEY = re.compile(r"Object missing required field `(.*)`")
_WRONG_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_PLACE = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_BYTE = re.compile(r"(?:JSON is malformed: )?([^()]+) \(byte (\d+)\)$")

_STRUCTS: Mapping[str, type[Struct]] = {
    "": wire.QueryRequest,
    "query": wire.Query,
    "query.selects": wire.Select,
    "query.filters": wire.Filter,
    "orderBy": wire.OrderBy,
}

_TYPE_NAMES: Mapping[str, str] = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def decode_query(body: bytes) -> wire.QueryRequest:
    """Decode a body. Raises `InvalidQuery` with `Invalid request body` and what is wrong where."""
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise _refusal(_explain(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _refusal(_explain_malformed(error)) from None
    except RecursionError:
        raise _refusal("it is nested too deeply") from None


def _refusal(sentence: str) -> InvalidQuery:
    return InvalidQuery(QueryFault.INVALID_BODY, f": {sentence}")


def _explain(message: str) -> str:
    found = _PLACE.search(message)
    place = found[1] if found else ""
    problem = message[: found.start()] if found else message
    if unknown := _UNKNOWN_KEY.fullmatch(problem):
        return _explain_unknown_key(unknown[1], place)
    if missing := _MISSING_KEY.fullmatch(problem):
        return f"missing key {quoted(missing[1])}{f' in {place}' if place else ''}"
    if wrong := _WRONG_TYPE.fullmatch(problem):
        return f"{place or 'it'} must be {_expected(wrong[1])}, not {_TYPE_NAMES[wrong[2]]}"
    return f"{problem[0].lower()}{problem[1:]}{f' in {place}' if place else ''}"


def _explain_unknown_key(key: str, place: str) -> str:
    keys = _keys(_STRUCTS[re.sub(r"\[\d+\]$", "", place)])
    return f"unknown key {quoted(key)}{_elsewhere(key, keys) or did_you_mean_one_of(key, keys)}"


def _elsewhere(key: str, keys: tuple[str, ...]) -> str:
    """Tell of a key that belongs in another place, such as `limit` or `Limit` inside `query`.

    Nothing where it does not, or where one of the `keys` of its own place is close.
    """
    homes = _homes()
    if key in homes:
        return f" (it belongs in {homes[key]})"
    meant = likely_meant(key, homes)
    if meant is None or likely_meant(key, keys) is not None:
        return ""
    return f" (did you mean {quoted(meant)} in {homes[meant]}?)"


def _homes() -> Mapping[str, str]:
    """Return all keys, and the places where each belongs."""
    homes: dict[str, list[str]] = {}
    for place, struct in _STRUCTS.items():
        for key in _keys(struct):
            homes.setdefault(key, []).append(place or "the outermost object")
    return {key: _listed(places) for key, places in homes.items()}


def _keys(struct: type[Struct]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(struct))


def _expected(union: str) -> str:
    names = dict.fromkeys(_TYPE_NAMES[part] for part in union.split(" | ") if part != "null")
    return _listed(list(names))


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _explain_malformed(error: Exception) -> str:
    where = _BYTE.fullmatch(str(error))
    return f"it is not valid JSON{f' ({where[1]} at byte {where[2]})' if where else ''}"
