"""Converts wire structs to the records of the log, and does nothing else.

The loader splits paths and parses URLs, because it runs after the acknowledgement.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import cast

import msgspec
from msgspec import Struct

from headrace.ingest.receive.decoding.decode import IngestPath, WireItem
from headrace.ingest.receive.enrich import Enrichment
from headrace.model.catalog import MAX_MESSAGE_LENGTH, MAX_STACK_LENGTH, PROMOTED_COLUMNS, Kind
from headrace.model.log_records import (
    ErrorEvent,
    ErrorRecord,
    EventTuple,
    FullEventTuple,
    PackedEventRecord,
    Visitor,
    Vital,
    VitalRecord,
    WrittenRecord,
)
from headrace.model.tenancy import WebsiteId
from headrace.model.wire import CustomEvent, ErrorReport, Level, PageView, WebVital

_EVENT_FIELDS = ("path", "url")  # promoted columns that every event has a field for
_TEXT_COLUMNS, _NUMBER_COLUMNS = (
    tuple(
        column.name
        for column in PROMOTED_COLUMNS
        if column.kind is kind and column.name not in _EVENT_FIELDS
    )
    for kind in (Kind.TEXT, Kind.NUMBER)
)
_get_texts = attrgetter(*_TEXT_COLUMNS)
_get_numbers = attrgetter(*_NUMBER_COLUMNS)
_MAX_INT = int(sys.float_info.max)
_encode_json = msgspec.json.Encoder().encode


class AuthorizedBatch(Struct, frozen=True):
    """One authorized request; `timestamps_ms` and `websites` are parallel to `items`.

    `expired` are the indexes of items that are too old to be stored.
    """

    received_ms: int
    items: Sequence[WireItem]
    timestamps_ms: Sequence[int]
    websites: Sequence[WebsiteId]
    enrichment: Enrichment
    has_api_key: bool
    idempotency_digest: bytes = b""
    expired: tuple[int, ...] = ()


def convert_batch(endpoint: IngestPath, batch: AuthorizedBatch) -> WrittenRecord:
    """Return the record of a request, without address and User-Agent."""
    return _CONVERTERS[endpoint](batch)


def _visitors(batch: AuthorizedBatch) -> Iterable[Visitor | None]:
    visitors = batch.enrichment.visitors
    return repeat(None) if visitors is None else visitors


def _convert_events(batch: AuthorizedBatch) -> PackedEventRecord:
    items = cast("Sequence[CustomEvent]", batch.items)  # the endpoint's decoder made them
    return _build_event_record(batch, items, None)


def _convert_page_views(batch: AuthorizedBatch) -> PackedEventRecord:
    items = cast("Sequence[PageView]", batch.items)  # the endpoint's decoder made them
    return _build_event_record(batch, items, map(promote_fields, items))


def _build_event_record(
    batch: AuthorizedBatch,
    items: Sequence[CustomEvent],
    promoted: Iterable[dict[str, str | float] | None] | None,
) -> PackedEventRecord:
    default_anonymous_id = batch.enrichment.anonymous_id
    rows: Sequence[EventTuple] = [
        (
            website,
            timestamp_ms,
            item.name,
            item.anonymous_id or default_anonymous_id,
            item.session_id or "",
            item.namespace or "",
            item.source or "",
            item.event_id or "",
            item.path or "",
            item.url or "",
            _encode_json(item.properties) if item.properties else b"",
        )
        for item, timestamp_ms, website in zip(
            items, batch.timestamps_ms, batch.websites, strict=False
        )
    ]
    packed_rows: Sequence[EventTuple] | Sequence[FullEventTuple] = rows
    profile_ids = [item.profile_id for item in items]
    if promoted is not None or batch.enrichment.visitors is not None or any(profile_ids):
        present_ids = [profile_id or "" for profile_id in profile_ids]
        suffixes = zip(promoted or repeat(None), _visitors(batch), present_ids, strict=False)
        packed_rows = [row + end for row, end in zip(rows, suffixes, strict=False)]
    return PackedEventRecord(
        batch.received_ms,
        batch.enrichment.visitor,
        packed_rows,
        batch.idempotency_digest,
        batch.has_api_key,
        expired=batch.expired,
    )


def promote_fields(item: PageView) -> dict[str, str | float] | None:
    """Return the promoted columns of a page view by name: texts and numbers only."""
    promoted: dict[str, str | float] = {
        name: value
        for name, value in zip(_TEXT_COLUMNS, _get_texts(item), strict=False)
        if type(value) is str and value
    }
    for name, value in zip(_NUMBER_COLUMNS, _get_numbers(item), strict=False):
        if type(value) is float:
            promoted[name] = value
        elif type(value) is int and -_MAX_INT <= value <= _MAX_INT:  # a boolean is no int here
            promoted[name] = float(value)
    return promoted or None


def _convert_vitals(batch: AuthorizedBatch) -> VitalRecord:
    default_anonymous_id = batch.enrichment.anonymous_id
    rows = zip(
        cast("Sequence[WebVital]", batch.items),  # the endpoint's decoder made them
        batch.timestamps_ms,
        batch.websites,
        _visitors(batch),
        strict=False,
    )
    vitals = [
        Vital(
            website,
            timestamp_ms,
            item.metric_name.value,
            item.metric_value,
            item.path,
            item.url or "",
            item.anonymous_id or default_anonymous_id,
            item.session_id or "",
            item.event_id or "",
            visitor,
        )
        for item, timestamp_ms, website, visitor in rows
    ]
    return VitalRecord(
        batch.received_ms,
        batch.enrichment.visitor,
        vitals,
        batch.idempotency_digest,
        batch.has_api_key,
        expired=batch.expired,
    )


def _convert_errors(batch: AuthorizedBatch) -> ErrorRecord:
    default_anonymous_id = batch.enrichment.anonymous_id
    rows = zip(
        cast("Sequence[ErrorReport]", batch.items),  # the endpoint's decoder made them
        batch.timestamps_ms,
        batch.websites,
        _visitors(batch),
        strict=False,
    )
    errors = [
        ErrorEvent(
            website,
            timestamp_ms,
            item.message[:MAX_MESSAGE_LENGTH],
            item.path,
            (item.level or Level.ERROR).value,
            item.error_type or "",
            item.filename or "",
            item.url or "",
            item.lineno,
            item.colno,
            (item.stack or "")[:MAX_STACK_LENGTH],
            item.anonymous_id or default_anonymous_id,
            item.session_id or "",
            item.event_id or "",
            visitor,
        )
        for item, timestamp_ms, website, visitor in rows
    ]
    return ErrorRecord(
        batch.received_ms,
        batch.enrichment.visitor,
        errors,
        batch.idempotency_digest,
        batch.has_api_key,
        expired=batch.expired,
    )


_CONVERTERS: Mapping[IngestPath, Callable[[AuthorizedBatch], WrittenRecord]] = {
    IngestPath.TRACK: _convert_events,
    IngestPath.VITALS: _convert_vitals,
    IngestPath.ERRORS: _convert_errors,
    IngestPath.BATCH: _convert_page_views,
    IngestPath.PAGE: _convert_page_views,
    IngestPath.ENGAGEMENT: _convert_events,
    IngestPath.IDENTIFY: _convert_events,
}
