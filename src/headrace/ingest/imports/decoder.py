"""What decodes the lines of one format."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Raw, Struct

from headrace.ingest.receive.decoding.body_scan import (
    MAX_NESTING,
    contains_nul,
    exceeds_depth,
    is_utf8,
    replace_lone_surrogates,
)
from headrace.ingest.receive.decoding.validation_errors import (
    DECODE_ERRORS,
    INVALID_CHARACTER,
    TOO_DEEP,
    Check,
    validate_items,
)
from headrace.model.imports import MAX_LINE_BYTES, DecodedChunk, ImportItem, LineChunk, RefusedLine

IN_THE_FUTURE = "must not be more than 24 hours ahead"
"""A request gets the time of its receipt instead. A repeated import would give another one."""

_RAW = msgspec.json.Decoder(Raw)
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_NOT_JSON = "it is no JSON object"
_TOO_LONG = f"it is longer than {MAX_LINE_BYTES // 1024**2} MiB"
_NOT_UTF_8 = "it is not UTF-8"


class ChunkDecoder(Protocol):
    """Decodes the chunks of an import in order; pure but for what it remembers of earlier ones."""

    def decode(self, chunk: LineChunk, *, now_ms: int) -> DecodedChunk:
        """Return the items of a chunk that is received at `now_ms`. Never raises for its lines."""
        ...


class InvalidLine(Exception):
    """A line that is not taken, and why."""


def check_line(line: bytes) -> None:
    """Raise `InvalidLine` for a line that is too long or too deep, not UTF-8, or contains NUL."""
    if len(line) > MAX_LINE_BYTES:
        raise InvalidLine(_TOO_LONG)
    if not is_utf8(line):
        raise InvalidLine(_NOT_UTF_8)
    if contains_nul(line):
        raise InvalidLine(INVALID_CHARACTER)
    if exceeds_depth(line, MAX_NESTING):
        raise InvalidLine(TOO_DEEP)


def decode_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line. Raises `InvalidLine`."""
    check_line(line)
    try:
        return _OBJECT.decode(line)
    except DECODE_ERRORS as error:
        raise InvalidLine(_NOT_JSON) from error


class JsonLineDecoder:
    """Decodes one JSON object by the rules of a request body with one item of type `item`.

    Most lines are of type `usual`, which has the same fields and is decoded faster. `checks` are
    the rules that types cannot express, by the Python name of a field.
    """

    def __init__(
        self, item: type[Struct], *, usual: type[Struct], checks: Mapping[str, Check]
    ) -> None:
        self._item = item
        self._checks = checks
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(item).decode
        self._decode_usual: Callable[[bytes], Any] = msgspec.json.Decoder(usual).decode

    def decode(self, line: bytes) -> Any:  # noqa: ANN401 - of a type that was passed
        """Return the item, of either type. Raises `InvalidLine`."""
        if len(line) > MAX_LINE_BYTES:
            raise InvalidLine(_TOO_LONG)
        if (
            (line.isascii() or is_utf8(line))  # most lines pass without a call
            and not (b"\\u" in line and contains_nul(line))
            and not exceeds_depth(line, MAX_NESTING)
        ):
            try:
                return self._decode_usual(line)
            except DECODE_ERRORS:
                pass
            try:
                return self._decode(line)
            except DECODE_ERRORS:
                pass
        raise InvalidLine(self.errors(line))

    def errors(self, line: bytes) -> str:
        """Return what is wrong with a line."""
        if not is_utf8(line):
            return _NOT_UTF_8
        try:
            raw = _RAW.decode(replace_lone_surrogates(line))
        except DECODE_ERRORS:
            return _NOT_JSON
        found = validate_items(self._item, [raw], levels_above=0, checks=self._checks).field_errors
        if not found:
            return _NOT_JSON
        return "; ".join(f"{error.field} {error.message}".strip() for error in found)


def decode_lines(chunk: LineChunk, decode: Callable[[bytes], ImportItem | None]) -> DecodedChunk:
    """Return what `decode` makes of each line: an item, or None for one to skip.

    A line for which it raises `InvalidLine` is refused.
    """
    items: list[ImportItem] = []
    refused: list[RefusedLine] = []
    skipped = 0
    for number, line in enumerate(chunk.lines, chunk.first_line):
        try:
            item = decode(line)
        except InvalidLine as error:
            refused.append(RefusedLine(chunk.file, number, str(error)))
            continue
        if item is None:
            skipped += 1
        else:
            items.append(item)
    return DecodedChunk(items, refused, len(chunk.lines), skipped)
