"""Tells what is wrong with a body that was refused: every fault of every item, for people.

Works from the wire structs themselves: their fields give the order, the limits and the words.
Slow beside the decoder, and only used after that has given up.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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

from headrace.base.errors import Fault
from headrace.ingest.receive.body_scan import MAX_NESTING, holds_nul, nests_deeper
from headrace.ingest.receive.timestamps import FORMATS

MAX_FAULTS = 50
"""A sender that breaks a rule breaks it in every item; more of the same helps nobody."""

NOT_AN_OBJECT = "must be an object"
REQUIRED = "is required"
UNREADABLE_CHARACTER = "must not contain NUL characters or lone surrogates"
TOO_DEEP = f"must not be nested deeper than {MAX_NESTING} levels"
NUMBER_OUT_OF_RANGE = "must not contain a number that is out of range"

_LONGEST_UNKNOWN_KEY = 256  # a longer one is not worth repeating in the reply

Check = Callable[[Any], object]
"""A rule beyond a field's type; raises `ValueError` with the sentence for the fault."""

_OBJECT = msgspec.json.Decoder(dict[str, Raw])
UNREADABLE = (msgspec.MsgspecError, RecursionError)
"""What decoding UTF-8 may raise: malformed, of another type, or nested too deep to be read."""


class _Field(Struct, frozen=True):
    """How to read one field by itself. A lenient one drops what it cannot use, but for texts."""

    name: str
    wire_name: str
    required: bool
    decoder: msgspec.json.Decoder[Any]
    sentence: str
    lenient: bool


class Reading(Struct, frozen=True):
    """The items of a body as far as they could be read, or what is wrong with them."""

    items: Sequence[Any]
    faults: tuple[Fault, ...]


def read_items(
    item: type[Struct], raws: Sequence[Raw], *, levels_above: int, checks: Mapping[str, Check]
) -> Reading:
    """Read items field by field and list at most 50 faults by index, then by field.

    `checks` are by the Python name of a field and see only values that are there.
    `levels_above` is 1 in an array, else 0.
    """
    items: list[Struct] = []
    faults: list[Fault] = []
    levels = MAX_NESTING - levels_above
    for index, raw in enumerate(map(bytes, raws)):
        whole = _read_whole(item, raw, levels=levels, checks=checks)
        values: dict[str, Any] = {}
        if whole is None:
            found = _faults_of_item(item, raw, values, levels=levels - 1, checks=checks)
            faults.extend(Fault(index, field, sentence) for field, sentence in found)
        if not faults:
            items.append(item(**values) if whole is None else whole)
        if len(faults) >= MAX_FAULTS:
            break
    return Reading(items=items, faults=tuple(faults[:MAX_FAULTS]))


def _read_whole(
    item: type[Struct], raw: bytes, *, levels: int, checks: Mapping[str, Check]
) -> Struct | None:
    """Read an item that nothing is wrong with: in a bad batch that is most of them."""
    try:
        _refuse_anywhere(raw, levels)
        whole = _decoder_of(item).decode(raw)
        for name, check in checks.items():
            value = getattr(whole, name)
            if value is not None:
                check(value)
    except (*UNREADABLE, ValueError):
        return None
    return whole


@functools.cache
def _decoder_of(item: type[Struct]) -> msgspec.json.Decoder[Struct]:
    return msgspec.json.Decoder(item)


def _faults_of_item(
    item: type[Struct],
    raw: bytes,
    values: dict[str, Any],
    *,
    levels: int,
    checks: Mapping[str, Check],
) -> Iterator[tuple[str, str]]:
    """Yield (field, sentence), and leave the values that could be read in `values`."""
    try:
        sent = _OBJECT.decode(raw)
    except UNREADABLE:
        yield "", NOT_AN_OBJECT
        return
    for field in _fields_of(item):
        value = bytes(sent.pop(field.wire_name, b"null"))
        try:
            _refuse_anywhere(value, levels)
            values[field.name] = _read_field(field, value, checks.get(field.name))
        except ValueError as fault:
            yield field.wire_name, str(fault)
    yield from _faults_of_unknown(sent, levels)


def _faults_of_unknown(sent: Mapping[str, Raw], levels: int) -> Iterator[tuple[str, str]]:
    for key, value in sent.items():
        if "\0" in key:
            yield "", UNREADABLE_CHARACTER
            continue
        try:
            _refuse_anywhere(bytes(value), levels)
        except ValueError as fault:
            yield key if len(key) <= _LONGEST_UNKNOWN_KEY else "", str(fault)


def _refuse_anywhere(value: bytes, levels: int) -> None:
    if holds_nul(value):
        raise ValueError(UNREADABLE_CHARACTER)
    if nests_deeper(value, levels):
        raise ValueError(TOO_DEEP)


def _read_field(field: _Field, raw: bytes, check: Check | None) -> object:
    if raw == b"null":
        if field.required:
            raise ValueError(REQUIRED)
        return None
    try:
        value = field.decoder.decode(raw)
    except UNREADABLE as error:
        value = _instead_of_unreadable(field, raw, error)
    if check is not None and value is not None:
        check(value)
    return None if value is math.inf else value


def _instead_of_unreadable(field: _Field, raw: bytes, error: Exception) -> object:
    """Return what stands for an unusable value: infinity, which no JSON number is."""
    if field.lenient and not raw.startswith(b'"'):
        return math.inf
    if field.sentence == NOT_AN_OBJECT and raw.startswith(b"{"):
        raise ValueError(NUMBER_OUT_OF_RANGE) from error
    raise ValueError(field.sentence) from error


@functools.cache
def _fields_of(item: type[Struct]) -> tuple[_Field, ...]:
    return tuple(
        _Field(
            name=field.name,
            wire_name=field.encode_name,
            required=field.required,
            decoder=msgspec.json.Decoder(field.type),
            sentence=_sentence_of(_types_in(field.type)),
            lenient=any(isinstance(kind, AnyType | BoolType) for kind in _types_in(field.type)),
        )
        for field in msgspec.structs.fields(item)
    )


def _types_in(annotation: Any) -> tuple[Type, ...]:  # noqa: ANN401 - that is what a type is
    kind = type_info(annotation)
    kinds = kind.types if isinstance(kind, UnionType) else (kind,)
    return tuple(one for one in kinds if not isinstance(one, NoneType))


def _sentence_of(kinds: tuple[Type, ...]) -> str:
    match kinds:
        case (StrType(min_length=least, max_length=most), *others) if not others or most:
            return _text_sentence(least, most)
        case (DictType(),):
            return NOT_AN_OBJECT
        case (FloatType(),):
            return "must be a finite number"
        case (EnumType(cls=choices),):
            return f"must be one of {', '.join(choice.value for choice in choices)}"
        case (AnyType(),):
            return ""  # takes everything
        case _:
            return FORMATS


def _text_sentence(least: int | None, most: int | None) -> str:
    if most is None:
        return "must be text"
    if least is None:
        return f"must be text of at most {most} characters"
    return f"must be text of {least} to {most} characters"
