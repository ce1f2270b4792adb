"""From what was sent to what is meant: wire structs to the records of the log, and nothing else.

Splitting paths and reading URLs is the loader's work: it is behind the acknowledgement.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import cast

import msgspec
from msgspec import Struct

from headrace.ingest.receive.decode import Endpoint, WireItem
from headrace.ingest.receive.enrich import Enrichment
from headrace.model.catalog import LIFTED_COLUMNS, Kind
from headrace.model.log_records import (
    ErrorEvent,
    ErrorRecord,
    EventRow,
    EventRowsRecord,
    Visitor,
    Vital,
    VitalRecord,
    WholeEventRow,
    WrittenRecord,
)
from headrace.model.tenancy import WebsiteId
from headrace.model.wire import CustomEvent, ErrorReport, Level, PageView, WebVital

MAX_MESSAGE = 4096
MAX_STACK = 65_536

_OWN_FIELDS = ("path", "url")  # lifted columns that every event has a field for
_TEXTS, _NUMBERS = (
    tuple(
        column.name
        for column in LIFTED_COLUMNS
        if column.kind is kind and column.name not in _OWN_FIELDS
    )
    for kind in (Kind.TEXT, Kind.NUMBER)
)
_get_texts = attrgetter(*_TEXTS)
_get_numbers = attrgetter(*_NUMBERS)
_LARGEST = int(sys.float_info.max)
_encode_json = msgspec.json.Encoder().encode


class AdmittedBatch(Struct, frozen=True):
    """One admitted request; `moments_ms` and `websites` are parallel to `items`."""

    received_ms: int
    items: Sequence[WireItem]
    moments_ms: Sequence[int]
    websites: Sequence[WebsiteId]
    enrichment: Enrichment
    repeat_key: bytes = b""


def convert_batch(endpoint: Endpoint, batch: AdmittedBatch) -> WrittenRecord:
    """Return the record of a request, without address and User-Agent."""
    return _CONVERTERS[endpoint](batch)


def _visitors(batch: AdmittedBatch) -> Iterable[Visitor | None]:
    visitors = batch.enrichment.visitors
    return repeat(None) if visitors is None else visitors


def _convert_events(batch: AdmittedBatch) -> EventRowsRecord:
    items = cast("Sequence[CustomEvent]", batch.items)  # the endpoint's decoder made them
    return _event_record(batch, items, None)


def _convert_page_views(batch: AdmittedBatch) -> EventRowsRecord:
    items = cast("Sequence[PageView]", batch.items)  # the endpoint's decoder made them
    return _event_record(batch, items, map(lift, items))


def _event_record(
    batch: AdmittedBatch,
    items: Sequence[CustomEvent],
    lifted: Iterable[dict[str, str | float] | None] | None,
) -> EventRowsRecord:
    nobody = batch.enrichment.anonymous_id
    rows: Sequence[EventRow] = [
        (
            website,
            moment_ms,
            item.name,
            item.anonymous_id or nobody,
            item.session_id or "",
            item.namespace or "",
            item.source or "",
            item.event_id or "",
            item.path or "",
            item.url or "",
            _encode_json(item.properties) if item.properties else b"",
        )
        for item, moment_ms, website in zip(items, batch.moments_ms, batch.websites, strict=False)
    ]
    written: Sequence[EventRow] | Sequence[WholeEventRow] = rows
    if lifted is not None or batch.enrichment.visitors is not None:
        ends = zip(lifted or repeat(None), _visitors(batch), strict=False)
        written = [row + end for row, end in zip(rows, ends, strict=False)]
    return EventRowsRecord(batch.received_ms, batch.enrichment.visitor, written, batch.repeat_key)


def lift(item: PageView) -> dict[str, str | float] | None:
    """Return what a page view brought for columns, by their names: texts and numbers only."""
    lifted: dict[str, str | float] = {
        name: value
        for name, value in zip(_TEXTS, _get_texts(item), strict=False)
        if type(value) is str and value
    }
    for name, value in zip(_NUMBERS, _get_numbers(item), strict=False):
        if type(value) is float:
            lifted[name] = value
        elif type(value) is int and -_LARGEST <= value <= _LARGEST:  # a boolean is no int here
            lifted[name] = float(value)
    return lifted or None


def _convert_vitals(batch: AdmittedBatch) -> VitalRecord:
    nobody = batch.enrichment.anonymous_id
    rows = zip(
        cast("Sequence[WebVital]", batch.items),  # the endpoint's decoder made them
        batch.moments_ms,
        batch.websites,
        _visitors(batch),
        strict=False,
    )
    vitals = [
        Vital(
            website,
            moment_ms,
            item.metric_name.value,
            item.metric_value,
            item.path,
            item.url or "",
            item.anonymous_id or nobody,
            item.session_id or "",
            item.event_id or "",
            visitor,
        )
        for item, moment_ms, website, visitor in rows
    ]
    return VitalRecord(batch.received_ms, batch.enrichment.visitor, vitals, batch.repeat_key)


def _convert_errors(batch: AdmittedBatch) -> ErrorRecord:
    nobody = batch.enrichment.anonymous_id
    rows = zip(
        cast("Sequence[ErrorReport]", batch.items),  # the endpoint's decoder made them
        batch.moments_ms,
        batch.websites,
        _visitors(batch),
        strict=False,
    )
    errors = [
        ErrorEvent(
            website,
            moment_ms,
            item.message[:MAX_MESSAGE],
            item.path,
            (item.level or Level.ERROR).value,
            item.error_type or "",
            item.filename or "",
            item.url or "",
            item.lineno,
            item.colno,
            (item.stack or "")[:MAX_STACK],
            item.anonymous_id or nobody,
            item.session_id or "",
            item.event_id or "",
            visitor,
        )
        for item, moment_ms, website, visitor in rows
    ]
    return ErrorRecord(batch.received_ms, batch.enrichment.visitor, errors, batch.repeat_key)


_CONVERTERS: Mapping[Endpoint, Callable[[AdmittedBatch], WrittenRecord]] = {
    Endpoint.TRACK: _convert_events,
    Endpoint.VITALS: _convert_vitals,
    Endpoint.ERRORS: _convert_errors,
    Endpoint.BATCH: _convert_page_views,
    Endpoint.PAGE: _convert_page_views,
}
