"""Decodes the bytes of a body into a struct: valid JSON, known keys, right types.

The rules are the types of the wire structs. msgspec checks them, and its messages are reworded
here; a message of unknown form, as another release of msgspec may bring, gives a generic error.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Generic, TypeGuard, TypeVar

import msgspec
from msgspec import Struct, UnsetType

from headrace.base.closest_match import closest_match
from headrace.base.errors import InvalidQuery, QueryErrorCode
from headrace.model import wire
from headrace.model.catalog import PRESENCE_OPERATORS, Operator
from headrace.query.validate.suggest import did_you_mean_one_of, quote_json, suggestion_of_all
from headrace.query.validate.synonyms import KEY_SYNONYMS, OPERATOR_SYNONYMS, meaning_of

_BodyT = TypeVar("_BodyT", bound=Struct)

_OPERATORS = tuple(operator.value for operator in Operator)
_WITHOUT_VALUE = frozenset(operator.value for operator in PRESENCE_OPERATORS)
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING_KEY = re.compile(r"Object missing required field `(.*)`")
_WRONG_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_PATH = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_INDEX = re.compile(r"\[\d+\]")
_GROUPS = re.compile(r"(?:\.(?:or|and))*$")
_BYTE = re.compile(r"(?:JSON is malformed: )?([^()]+) \(byte (\d+)\)$")

_OUTER_PATHS = ("", "query")

_TOO_DEEP = "it is nested too deeply"

_MAX_NESTED_GROUPS = 64
"""Far more than a query may have, and few enough to look at recursively. The decoder's own bound
depends on the version of Python: from 3.12 on it is five thousand."""

_TYPE_NAMES: Mapping[str, str] = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


class BodyType(Generic[_BodyT]):
    """The bodies of one endpoint: the struct of the root, and those of the objects within it.

    `objects` are by path, without indexes: the items of `steps[0].filters` are `steps.filters`.
    """

    def __init__(self, root: type[_BodyT], objects: Mapping[str, type[Struct]]) -> None:
        self.decoder = msgspec.json.Decoder(root)
        self.objects: Mapping[str, type[Struct]] = {"": root, **objects}


def decode_body(body: bytes, body_type: BodyType[_BodyT]) -> _BodyT:
    """Decode a body. Raises `InvalidQuery`: `Invalid request body` with the error and its path."""
    try:
        return body_type.decoder.decode(body)
    except msgspec.ValidationError as error:
        explained = explain_validation_error(str(error), body_type.objects)
        raise _invalid_body(explained) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _invalid_body(_explain_malformed(error)) from None
    except RecursionError:
        raise _invalid_body(_TOO_DEEP) from None


def check_keys(value: object, path: str, body_type: BodyType[_BodyT]) -> None:
    """Raise `InvalidQuery` for an unknown key of an object, or of the objects of an array.

    For fields whose values have no type, because a wrong one has an error code of its own.
    """
    struct = body_type.objects[path]
    known = _keys(struct)
    items = (
        [(f"{path}[{index}]", item) for index, item in enumerate(value)]
        if _is_array(value)
        else [(path, value)]
    )
    for item_path, item in items:
        for key in item if _is_object(item) else ():
            if key not in known:
                raise _invalid_body(_explain_unknown_key(key, struct, body_type.objects, item_path))


def _is_array(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def check_filter_keys(items: Sequence[wire.Filter], path: str, *, depth: int = 0) -> None:
    """Raise `InvalidQuery` unless every item is a condition with all its keys, or a group.

    `depth` is the number of groups around the items.
    """
    if items and depth > _MAX_NESTED_GROUPS:
        raise _invalid_body(_TOO_DEEP)
    for index, item in enumerate(items):
        here = f"{path}[{index}]"
        if item.any_of is None and item.all_of is None:
            _check_condition_keys(item, here)
        check_filter_keys(item.any_of or (), f"{here}.or", depth=depth + 1)
        check_filter_keys(item.all_of or (), f"{here}.and", depth=depth + 1)


def _check_condition_keys(item: wire.Filter, path: str) -> None:
    for key, value in (("field", item.field), ("operator", item.operator), ("value", item.value)):
        if value is msgspec.UNSET and not (key == "value" and item.operator in _WITHOUT_VALUE):
            also = _explain_operator(item.operator) if key == "value" else ""
            raise _invalid_body(f"missing key {quote_json(key)} in {path}{also}")


def _explain_operator(name: str | UnsetType) -> str:
    """Return what is wrong with an operator that lacks a value: one misspelled may take none."""
    if isinstance(name, UnsetType) or name in _OPERATORS:
        return ""
    return (
        f", and the operator {quote_json(name)} is unknown"
        f"{did_you_mean_one_of(name, _OPERATORS, OPERATOR_SYNONYMS)}"
    )


def _invalid_body(detail: str) -> InvalidQuery:
    return InvalidQuery(QueryErrorCode.INVALID_BODY, f": {detail}")


def explain_validation_error(message: str, objects: Mapping[str, type[Struct]]) -> str:
    """Reword a message of msgspec. Never raises: one of unknown form is repeated as it is."""
    match = _PATH.search(message)
    path = match[1] if match else ""
    problem = (message[: match.start()] if match else message) or "it is not valid"
    struct = objects.get(_GROUPS.sub("", _INDEX.sub("", path)))
    if struct is not None and (unknown := _UNKNOWN_KEY.fullmatch(problem)):
        return _explain_unknown_key(unknown[1], struct, objects, path)
    if missing := _MISSING_KEY.fullmatch(problem):
        return f"missing key {quote_json(missing[1])}{f' in {path}' if path else ''}"
    if wrong := _WRONG_TYPE.fullmatch(problem):
        return f"{path or 'it'} must be {_explain_wrong_type(wrong[1].split(' | '), wrong[2])}"
    return f"{problem[0].lower()}{problem[1:]}{f' in {path}' if path else ''}"


def _explain_unknown_key(
    key: str, struct: type[Struct], objects: Mapping[str, type[Struct]], path: str
) -> str:
    """Return what is wrong with a key; its path where one of several entries has it."""
    keys = _keys(struct)
    if meant := meaning_of(key, KEY_SYNONYMS, keys):
        hint = suggestion_of_all(meant)
    else:
        hint = _suggest_other_path(key, keys, objects) or did_you_mean_one_of(key, keys)
    where = f" in {path}" if _INDEX.search(path) else ""
    return f"unknown key {quote_json(key)}{where}{hint}"


def _suggest_other_path(
    key: str, keys: tuple[str, ...], objects: Mapping[str, type[Struct]]
) -> str:
    """Return a hint for a key that belongs to another object, such as `limit` inside `query`.

    Returns "" for any other key, and for one that is similar to one of the object's own `keys`, or
    the beginning of one: `op` of a filter is not the `top` of a query.
    """
    paths_by_key = _paths_by_key(objects)
    if key in paths_by_key:
        return f" (it belongs in {paths_by_key[key]})"
    meant = meaning_of(key, KEY_SYNONYMS, _outer_keys(objects))
    closest = closest_match(key, paths_by_key)
    is_own = closest_match(key, keys) is not None or any(own.startswith(key) for own in keys)
    names = meant or ((closest,) if closest is not None and not is_own else ())
    if not names:
        return ""
    return suggestion_of_all(names, where=f" in {paths_by_key[names[0]]}")


def _outer_keys(objects: Mapping[str, type[Struct]]) -> Collection[str]:
    """Return the keys of the outermost objects: what belongs into one within depends on which."""
    return {key for path in _OUTER_PATHS if path in objects for key in _keys(objects[path])}


def _paths_by_key(objects: Mapping[str, type[Struct]]) -> Mapping[str, str]:
    """Return every key with the names of the objects that it belongs to."""
    paths_by_key: dict[str, list[str]] = {}
    for path, struct in objects.items():
        for key in _keys(struct):
            paths_by_key.setdefault(key, []).append(path or "the outermost object")
    return {key: _join_alternatives(paths) for key, paths in paths_by_key.items()}


def _keys(struct: type[Struct]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(struct))


def _explain_wrong_type(expected: Sequence[str], got: str) -> str:
    """Return what a value must be, and what it is. Most numbers may have a fraction."""
    if "int" in expected and "float" not in expected:
        names = {**_TYPE_NAMES, "int": "a whole number", "float": "a number with a fraction"}
    else:
        names = dict(_TYPE_NAMES)
    wanted = dict.fromkeys(_type_name(name, names) for name in expected if name != "null")
    return f"{_join_alternatives(list(wanted) or ['null'])}, not {_type_name(got, names)}"


def _type_name(name: str, names: Mapping[str, str]) -> str:
    return names.get(name, f"of type {name}")


def _join_alternatives(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _explain_malformed(error: Exception) -> str:
    where = _BYTE.fullmatch(str(error))
    return f"it is not valid JSON{f' ({where[1]} at byte {where[2]})' if where else ''}"
