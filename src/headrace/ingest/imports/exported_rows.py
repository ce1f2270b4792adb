"""Decodes the rows of an export back to the items that they were made of.

A row has all columns of its table. What the loader derives from an item (a path from a URL, columns
from properties) is derived from the row again, with the same result. Datetimes have any form of a
timestamp of a request: other programs write those of an export as numbers, for example.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from itertools import compress
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from headrace.base.clock import MILLISECONDS_PER_DAY
from headrace.formats.row_ids import ROW_ID_BYTES, receipt_time_ms
from headrace.ingest.imports.decoder import (
    IN_THE_FUTURE,
    InvalidLine,
    JsonLineDecoder,
    decode_lines,
)
from headrace.ingest.receive.decoding.timestamps import (
    EARLIEST_MS,
    TOO_EARLY,
    parse_epoch_ms,
)
from headrace.ingest.receive.decoding.validation_errors import Check
from headrace.model.catalog import PROMOTED_COLUMNS, Kind
from headrace.model.imports import DecodedChunk, ImportItem, LineChunk
from headrace.model.log_records import ErrorEvent, EventKind, Visitor, Vital
from headrace.model.storage import STORAGE_TABLES, TABLE_OF_KIND, StoredColumn
from headrace.model.wire import CustomEvent, ErrorReport, WebVital

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_WIRE_ITEMS: Mapping[EventKind, type[Struct]] = {
    EventKind.EVENTS: CustomEvent,
    EventKind.VITALS: WebVital,
    EventKind.ERRORS: ErrorReport,
}
_WIRE_NAMES: Mapping[str, str] = {"event_name": "name"}
_VISITOR_CACHE_SIZE: Final = 65_536
_IGNORED = frozenset({"website_id"})
_encode_json = msgspec.json.Encoder().encode

ID_ERROR = f"must be {2 * ROW_ID_BYTES} hexadecimal digits"
BOOLEAN_ERROR = "must be true or false"


def _check_id(value: object) -> bytes:
    text = value if isinstance(value, str) else ""
    try:
        row_id = bytes.fromhex(text)
    except ValueError as error:
        raise ValueError(ID_ERROR) from error
    if len(row_id) != ROW_ID_BYTES or len(text) != 2 * ROW_ID_BYTES:
        raise ValueError(ID_ERROR)
    return row_id


def _check_boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(BOOLEAN_ERROR)  # noqa: TRY004 - a field error, as all others
    return value


def _check_time(value: datetime | float | str) -> int:
    if not isinstance(value, datetime):
        return parse_epoch_ms(value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    time_ms = (value - _EPOCH) // _MILLISECOND
    if time_ms < EARLIEST_MS:
        raise ValueError(TOO_EARLY)
    return time_ms


_CHECKS: Mapping[Kind, Check] = {
    Kind.IDENTIFIER: _check_id,
    Kind.BOOLEAN: _check_boolean,
    Kind.DATETIME: _check_time,
}
_TYPES: Mapping[Kind, Any] = {
    Kind.IDENTIFIER: str,
    Kind.BOOLEAN: Any,  # checked: the types of fields drop a wrong value that is a boolean
    Kind.NUMBER: float | None,
    Kind.JSON: dict[str, Any] | None,
}


def _field(kind: EventKind, column: StoredColumn) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Return the field of a column: its type is that of the field of requests, where one exists."""
    wire = {field.name: field for field in msgspec.structs.fields(_WIRE_ITEMS[kind])}
    same = wire.get(_WIRE_NAMES.get(column.name, column.name))
    if same is not None and column.kind is not Kind.JSON:
        return (column.name, same.type) if same.required else (column.name, same.type, None)
    if column.kind is Kind.TEXT:
        table = TABLE_OF_KIND[kind]
        max_length = next(c.max_length for c in table.columns if c.name == column.name)
        text: Any = Annotated[str, Meta(max_length=max_length)]
        return column.name, text | None, None
    if column.kind is Kind.IDENTIFIER:
        return column.name, _TYPES[column.kind]
    default = False if column.kind is Kind.BOOLEAN else None
    return column.name, _TYPES[column.kind], default


def _columns(kind: EventKind) -> Sequence[StoredColumn]:
    columns = STORAGE_TABLES[TABLE_OF_KIND[kind].name].shown_columns
    return [column for column in columns if column.name not in _IGNORED]


def _row_types(name: str, *, datetimes: Any) -> Mapping[EventKind, type[Struct]]:  # noqa: ANN401 - a type
    """Return the types of rows in which datetimes are of a type."""
    return {
        kind: msgspec.defstruct(
            f"{name}{kind.name.title()}",
            [
                (column.name, datetimes) if column.kind is Kind.DATETIME else _field(kind, column)
                for column in _columns(kind)
            ],
            gc=False,
            kw_only=True,
        )
        for kind in EventKind
    }


_ROW_TYPES = _row_types("Exported", datetimes=float | str)
_USUAL_ROW_TYPES = _row_types("Usual", datetimes=datetime)
"""Of rows as an export writes them: msgspec parses their datetimes."""

_ROW_CHECKS: Mapping[EventKind, Mapping[str, Check]] = {
    kind: {c.name: _CHECKS[c.kind] for c in _columns(kind) if c.kind in _CHECKS}
    for kind in EventKind
}
_read_visitor_texts: Callable[[Any], tuple[Any, ...]] = attrgetter(
    *(name for name in Visitor.__struct_fields__ if name != "is_bot")
)
_make_visitor: Callable[..., Visitor] = Visitor  # mypy counts the arguments after a star
_TEXTS, _NUMBERS = (
    tuple(
        column.name
        for column in PROMOTED_COLUMNS
        if column.kind is kind and column.name not in {"path", "url"}
    )
    for kind in (Kind.TEXT, Kind.NUMBER)
)
_read_texts: Callable[[Any], tuple[Any, ...]] = attrgetter(*_TEXTS)
_NO_NUMBERS = (None,) * len(_NUMBERS)
_read_numbers: Callable[[Any], tuple[Any, ...]] = attrgetter(*_NUMBERS)


class ExportedRowDecoder:
    """Decodes NDJSON as `headrace export` writes it."""

    def __init__(self, event_kind: EventKind, website_id: str) -> None:
        self._website_id = website_id
        self._decoder = JsonLineDecoder(
            _ROW_TYPES[event_kind],
            usual=_USUAL_ROW_TYPES[event_kind],
            checks=_ROW_CHECKS[event_kind],
        )
        self._convert = _CONVERTERS[event_kind]
        self._has_receipt = event_kind is EventKind.EVENTS

    def decode(self, chunk: LineChunk, *, now_ms: int) -> DecodedChunk:
        """Return the items of a chunk; see `ChunkDecoder`. Empty lines are skipped."""
        return decode_lines(chunk, partial(self._item, now_ms))

    def _item(self, now_ms: int, line: bytes) -> ImportItem | None:
        if not line or line.isspace():
            return None
        row = self._decoder.decode(line)
        try:
            row_id, time_ms = _check_id(row.id), _check_time(row.time)
            received_ms = _check_time(row.received_at) if self._has_receipt else now_ms
            if type(row.is_bot) is not bool:
                _check_boolean(row.is_bot)
        except ValueError as error:
            raise InvalidLine(self._decoder.errors(line)) from error
        latest_ms = now_ms + MILLISECONDS_PER_DAY
        if time_ms > latest_ms or received_ms > latest_ms:
            raise InvalidLine(f"time and received_at {IN_THE_FUTURE}")
        if receipt_time_ms(row_id) > latest_ms:
            raise InvalidLine(f"the time in id {IN_THE_FUTURE}")
        return ImportItem(
            time_ms, row_id, received_ms, self._convert(row, self._website_id, time_ms)
        )


def _event(row: Any, website_id: str, time_ms: int) -> tuple[Any, ...]:  # noqa: ANN401 - as read
    texts = _read_texts(row)
    promoted: dict[str, Any] = dict(compress(zip(_TEXTS, texts, strict=False), texts))
    numbers = _read_numbers(row)
    if numbers != _NO_NUMBERS:
        present = zip(_NUMBERS, numbers, strict=False)
        promoted.update({name: number for name, number in present if number is not None})
    return (
        website_id,
        time_ms,
        row.event_name,
        row.anonymous_id or "",
        row.session_id or "",
        row.namespace or "",
        row.source or "",
        "",
        row.path or "",
        row.url or "",
        _encode_json(row.properties) if row.properties is not None else b"",
        promoted or None,
        _visitor(row),
        row.profile_id or "",
    )


def _vital(row: Any, website_id: str, time_ms: int) -> Vital:  # noqa: ANN401 - as read
    return Vital(
        website_id,
        time_ms,
        row.metric_name.value,
        row.metric_value,
        row.path,
        row.url or "",
        row.anonymous_id or "",
        row.session_id or "",
        "",
        _visitor(row),
    )


def _error(row: Any, website_id: str, time_ms: int) -> ErrorEvent:  # noqa: ANN401 - as read
    return ErrorEvent(
        website_id,
        time_ms,
        row.message,
        row.path,
        row.level.value if row.level is not None else "error",
        row.error_type or "",
        row.filename or "",
        row.url or "",
        row.lineno,
        row.colno,
        row.stack or "",
        row.anonymous_id or "",
        row.session_id or "",
        "",
        _visitor(row),
    )


def _visitor(row: Any) -> Visitor:  # noqa: ANN401 - as read
    return _visitor_of(_read_visitor_texts(row), is_bot=row.is_bot)


@lru_cache(_VISITOR_CACHE_SIZE)
def _visitor_of(texts: tuple[str | None, ...], *, is_bot: bool) -> Visitor:
    return _make_visitor(*[text or "" for text in texts], is_bot)


_CONVERTERS: Mapping[EventKind, Callable[[Any, str, int], Any]] = {
    EventKind.EVENTS: _event,
    EventKind.VITALS: _vital,
    EventKind.ERRORS: _error,
}
