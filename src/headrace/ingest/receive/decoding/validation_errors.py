"""Lists the field errors of a rejected body: every error of every item, for the client.

Order, limits and messages are derived from the fields of the wire structs, not from the texts of
msgspec's exceptions. Slow compared to the typed decoder, and used only after that has failed.
"""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.inspect import (
    AnyType,
    BoolType,
    DictType,
    EnumType,
    FloatType,
    NoneType,
    StrType,
    Type,
    UnionType,
    type_info,
)

from headrace.base.errors import FieldError
from headrace.ingest.receive.decoding.body_scan import MAX_NESTING, contains_nul, exceeds_depth
from headrace.ingest.receive.decoding.timestamps import INVALID_TIMESTAMP
from headrace.model.wire import VISITOR_FIELDS

MAX_FIELD_ERRORS = 50
"""A client that breaks a rule usually breaks it in every item; more entries add nothing."""

NOT_AN_OBJECT = "must be an object"
REQUIRED = "is required"
INVALID_CHARACTER = "must not contain NUL characters or lone surrogates"
TOO_DEEP = f"must not be nested deeper than {MAX_NESTING} levels"
NUMBER_OUT_OF_RANGE = "must not contain a number that is out of range"

_LONGEST_UNKNOWN_KEY = 256  # a longer one is not repeated in the reply

Check = Callable[[Any], object]
"""A rule beyond a field's type; raises `ValueError` with the message of the field error."""

_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_VALUE = msgspec.json.Decoder(Any)
DECODE_ERRORS = (msgspec.MsgspecError, RecursionError)
"""The exceptions of decoding UTF-8: malformed, of another type, or nested too deep."""


class _Field(Struct, frozen=True):
    """How to decode one field on its own.

    A lenient field drops a value that cannot be decoded, unless that is a text over its limit.
    """

    name: str
    wire_name: str
    required: bool
    decoder: msgspec.json.Decoder[Any]
    message: str
    lenient: bool


class ValidationResult(Struct, frozen=True):
    """The items of a valid body, or the field errors of an invalid one."""

    items: Sequence[Any]
    field_errors: tuple[FieldError, ...]


def validate_items(
    item: type[Struct],
    raws: Sequence[Raw],
    *,
    levels_above: int,
    checks: Mapping[str, Check],
    keeps_unknown_keys: bool = False,
) -> ValidationResult:
    """Decode items field by field and list at most 50 field errors, by index, then by field.

    `checks` are by the Python name of a field, and are not called for missing values.
    `levels_above` is 1 in an array, else 0. `keeps_unknown_keys` is whether the values of unknown
    keys are decoded later.
    """
    items: list[Struct] = []
    field_errors: list[FieldError] = []
    levels = MAX_NESTING - levels_above
    for index, raw in enumerate(map(bytes, raws)):
        decoded = None
        if not keeps_unknown_keys:
            decoded = _decode_valid(item, raw, levels=levels, checks=checks)
        values: dict[str, Any] = {}
        if decoded is None:
            item_errors = tuple(
                _item_errors(
                    item,
                    raw,
                    values,
                    levels=levels - 1,
                    checks=checks,
                    keeps_unknown_keys=keeps_unknown_keys,
                )
            ) or _overridden_value_errors(raw, levels)
            field_errors.extend(FieldError(index, field, message) for field, message in item_errors)
        if not field_errors:
            items.append(item(**values) if decoded is None else decoded)
        if len(field_errors) >= MAX_FIELD_ERRORS:
            break
    return ValidationResult(items=items, field_errors=tuple(field_errors[:MAX_FIELD_ERRORS]))


def _decode_valid(
    item: type[Struct], raw: bytes, *, levels: int, checks: Mapping[str, Check]
) -> Struct | None:
    """Decode a valid item, else return None. In a bad batch most items are valid."""
    try:
        _check_characters_and_depth(raw, levels)
        decoded = _decoder_for(item).decode(raw)
        for name, check in checks.items():
            value = getattr(decoded, name)
            if value is not None:
                check(value)
    except (*DECODE_ERRORS, ValueError):
        return None
    return decoded


@functools.cache
def _decoder_for(item: type[Struct]) -> msgspec.json.Decoder[Struct]:
    return msgspec.json.Decoder(item)


def _item_errors(
    item: type[Struct],
    raw: bytes,
    values: dict[str, Any],
    *,
    levels: int,
    checks: Mapping[str, Check],
    keeps_unknown_keys: bool,
) -> Iterator[tuple[str, str]]:
    """Yield (field, message), and add the values that could be decoded to `values`.

    Fields of a visitor that have no check are unknown keys.
    """
    try:
        sent = _OBJECT.decode(raw)
    except DECODE_ERRORS:
        yield "", NOT_AN_OBJECT
        return
    for field in _fields_of(item):
        if field.wire_name not in sent:  # as most are, and an item of few bytes should cost little
            if field.required:
                yield field.wire_name, REQUIRED
            continue
        if field.name in VISITOR_FIELDS and field.name not in checks:
            continue
        value = bytes(sent.pop(field.wire_name))
        try:
            _check_characters_and_depth(value, levels)
            values[field.name] = _read_field(field, value, checks.get(field.name))
        except ValueError as error:
            yield field.wire_name, str(error)
    kept = sent.keys() - _wire_names(item) if keeps_unknown_keys else frozenset[str]()
    yield from _unknown_key_errors(sent, levels, kept)


def _unknown_key_errors(
    sent: Mapping[str, Raw], levels: int, kept: Collection[str]
) -> Iterator[tuple[str, str]]:
    for key, value in sent.items():
        shown_key = key if len(key) <= _LONGEST_UNKNOWN_KEY else ""
        if "\0" in key or contains_nul(bytes(value)):
            yield "", INVALID_CHARACTER
        elif exceeds_depth(bytes(value), levels):
            yield shown_key, TOO_DEEP
        elif key in kept and not _is_decodable(value):
            yield shown_key, NUMBER_OUT_OF_RANGE


def _is_decodable(value: Raw) -> bool:
    try:
        _VALUE.decode(value)
    except DECODE_ERRORS:
        return False
    return True


def _overridden_value_errors(raw: bytes, levels: int) -> Sequence[tuple[str, str]]:
    """Return the error of an item whose own values are valid: of one under a repeated key."""
    try:
        _check_characters_and_depth(raw, levels)
    except ValueError as error:
        return (("", str(error)),)
    return ()


def _check_characters_and_depth(value: bytes, levels: int) -> None:
    if contains_nul(value):
        raise ValueError(INVALID_CHARACTER)
    if exceeds_depth(value, levels):
        raise ValueError(TOO_DEEP)


def _read_field(field: _Field, raw: bytes, check: Check | None) -> object:
    if raw == b"null":
        if field.required:
            raise ValueError(REQUIRED)
        return None
    try:
        value = field.decoder.decode(raw)
    except DECODE_ERRORS as error:
        if not field.lenient or raw.startswith(b'"'):
            raise ValueError(_decode_message(field, raw)) from error
        if check is not None:
            check(Raw(raw))  # no check accepts an undecoded value
        return None
    if check is not None and value is not None:
        check(value)
    return value


def _decode_message(field: _Field, raw: bytes) -> str:
    is_object = field.message == NOT_AN_OBJECT and raw.startswith(b"{")
    return NUMBER_OUT_OF_RANGE if is_object else field.message


@functools.cache
def _fields_of(item: type[Struct]) -> tuple[_Field, ...]:
    return tuple(
        _Field(
            name=field.name,
            wire_name=field.encode_name,
            required=field.required,
            decoder=msgspec.json.Decoder(field.type),
            message=_message_for(_non_null_types(field.type)),
            lenient=any(
                isinstance(kind, AnyType | BoolType) for kind in _non_null_types(field.type)
            ),
        )
        for field in msgspec.structs.fields(item)
    )


@functools.cache
def _wire_names(item: type[Struct]) -> frozenset[str]:
    return frozenset(field.wire_name for field in _fields_of(item))


def _non_null_types(annotation: Any) -> tuple[Type, ...]:  # noqa: ANN401 - that is what a type is
    kind = type_info(annotation)
    kinds = kind.types if isinstance(kind, UnionType) else (kind,)
    return tuple(one for one in kinds if not isinstance(one, NoneType))


def _message_for(kinds: tuple[Type, ...]) -> str:
    match kinds:
        case (StrType(min_length=min_length, max_length=max_length), *others) if (
            not others or max_length
        ):
            return _text_message(min_length, max_length)
        case (DictType(),):
            return NOT_AN_OBJECT
        case (FloatType(),):
            return "must be a finite number"
        case (EnumType(cls=choices),):
            return f"must be one of {', '.join(choice.value for choice in choices)}"
        case (AnyType(),):
            return ""  # accepts everything
        case _:
            return INVALID_TIMESTAMP


def _text_message(min_length: int | None, max_length: int | None) -> str:
    if max_length is None:
        return "must be text"
    if min_length is None:
        return f"must be text of at most {max_length} characters"
    return f"must be text of {min_length} to {max_length} characters"
