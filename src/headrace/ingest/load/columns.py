"""From the items of a batch to the columns of the stored tables. Pure.

One comprehension a column; what differs between items stands in parallel lists. Attributes are
named in each: through `attrgetter` it takes twice as long.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeAlias

from msgspec import Struct

from headrace.ingest.load.batch import Batch, ItemT
from headrace.ingest.load.property_columns import (
    NOTHING_LIFTED,
    Lifted,
    campaign_of,
    lift,
    settle_page,
)
from headrace.model.catalog import LIFTED_COLUMNS, Kind, Table
from headrace.model.log_records import ErrorEvent, Event, Stream, Visitor, Vital
from headrace.model.storage import TABLE_OF_STREAM

Columns = Mapping[str, Sequence[Any]]
"""Values by the stored column's name, all equally long: texts, floats or None, epoch milliseconds,
booleans, sixteen bytes for `id`, JSON text as bytes for `properties`.

A column that is not there is missing in every row: "", None or False.
"""

_VISITOR_COLUMNS = tuple(Visitor.__struct_fields__)
_LIFTED = tuple(column for column in LIFTED_COLUMNS if column.name not in {"path", "url"})
_PAGE_LIMIT = 2048
_MESSAGE_LIMIT = 4096
_STACK_LIMIT = 65_536


def event_columns(batch: Batch[Event]) -> Columns:
    """Return the columns of `events`."""
    items = batch.items
    lifteds, paths, urls = _settle_events(items)
    return {
        **_shared_columns(batch, paths, urls),
        **_lifted_columns(lifteds),
        "event_name": [item.name for item in items],
        "namespace": [item.namespace for item in items],
        "source": [item.source for item in items],
        "received_at": batch.received_ms,
        "properties": [item.properties for item in items],
    }


def vital_columns(batch: Batch[Vital]) -> Columns:
    """Return the columns of `performance`."""
    items = batch.items
    return {
        **_shared_columns(batch, *_settle_pages(items)),
        "metric_name": [item.metric_name for item in items],
        "metric_value": [item.metric_value for item in items],
    }


def error_columns(batch: Batch[ErrorEvent]) -> Columns:
    """Return the columns of `errors`."""
    items = batch.items
    return {
        **_shared_columns(batch, *_settle_pages(items)),
        "stack": [item.stack[:_STACK_LIMIT] for item in items],
        "message": [item.message[:_MESSAGE_LIMIT] for item in items],
        "level": [item.level for item in items],
        "error_type": [item.error_type for item in items],
        "filename": [item.filename for item in items],
        "lineno": [item.lineno for item in items],
        "colno": [item.colno for item in items],
    }


class Shape(Struct, Generic[ItemT], frozen=True):
    """Where the items of a stream are stored, and how they become columns."""

    table: Table
    columns: Callable[[Batch[ItemT]], Columns]


SHAPES: Mapping[Stream, Shape[Any]] = {
    Stream.EVENTS: Shape(TABLE_OF_STREAM[Stream.EVENTS], event_columns),
    Stream.VITALS: Shape(TABLE_OF_STREAM[Stream.VITALS], vital_columns),
    Stream.ERRORS: Shape(TABLE_OF_STREAM[Stream.ERRORS], error_columns),
}


def _settle_events(items: Sequence[Event]) -> tuple[list[Lifted], list[str], list[str]]:
    lifteds = [lift(item) if item.properties or item.lifted else NOTHING_LIFTED for item in items]
    brought = _brought(lifteds)
    paths, urls = [item.path for item in items], [item.url for item in items]
    if "path" in brought:
        paths = [
            own or lifted.get("path") or "" for own, lifted in zip(paths, lifteds, strict=True)
        ]
    if "url" in brought:
        urls = [own or lifted.get("url") or "" for own, lifted in zip(urls, lifteds, strict=True)]
    known: dict[tuple[str, str], _Page] = {}  # pages come often
    for number, page in enumerate(zip(paths, urls, strict=True)):
        path, url = page
        if (url and not path) or "?" in url or path[:4] == "http":
            if page not in known:
                known[page] = _settle(path, url)
            paths[number], urls[number], campaign = known[page]
            if campaign:
                lifteds[number] = _with_campaign(lifteds[number], campaign)
    return lifteds, paths, urls


_Page: TypeAlias = tuple[str, str, Mapping[str, str]]
"""Path, URL and the utm values of its query."""


def _settle(path: str, url: str) -> _Page:
    path, url = settle_page(path, url)
    return path, url, campaign_of(url) if "?" in url else {}


def _with_campaign(lifted: Lifted, campaign: Mapping[str, str]) -> Lifted:
    missing = {name: value for name, value in campaign.items() if not lifted.get(name)}
    return {**lifted, **missing}


def _settle_pages(items: Sequence[Vital] | Sequence[ErrorEvent]) -> tuple[list[str], list[str]]:
    pages = [settle_page(item.path, item.url) for item in items]
    return [path for path, _ in pages], [url for _, url in pages]


def _lifted_columns(lifteds: Sequence[Lifted]) -> dict[str, Sequence[Any]]:
    brought = _brought(lifteds)
    columns: dict[str, Sequence[Any]] = {}
    for column in _LIFTED:
        name = column.name
        if name in brought and column.kind is Kind.TEXT:
            texts = [lifted.get(name) or "" for lifted in lifteds]
            columns[name] = _cut(texts, column.max_length)
        elif name in brought:
            columns[name] = [lifted.get(name) for lifted in lifteds]
    return columns


def _brought(lifteds: Sequence[Lifted]) -> frozenset[str]:
    return frozenset[str]().union(*lifteds)


def _shared_columns(
    batch: Batch[Any], paths: Sequence[str], urls: Sequence[str]
) -> dict[str, Sequence[Any]]:
    items = batch.items
    return {
        "id": batch.ids,
        "website_id": [item.website_id for item in items],
        "anonymous_id": [item.anonymous_id for item in items],
        "session_id": [item.session_id for item in items],
        "path": _cut(paths, _PAGE_LIMIT),
        "url": _cut(urls, _PAGE_LIMIT),
        "time": [item.time_ms for item in items],
        **_visitor_columns(batch.visitors),
    }


def _visitor_columns(visitors: Sequence[Visitor]) -> dict[str, Sequence[Any]]:
    distinct = {id(visitor): visitor for visitor in visitors}.values()
    readers = {name: attrgetter(name) for name in _VISITOR_COLUMNS}
    return {
        name: list(map(read, visitors))
        for name, read in readers.items()
        if any(map(read, distinct))
    }


def _cut(texts: Sequence[str], limit: int) -> Sequence[str]:
    if max(map(len, texts), default=0) <= limit:
        return texts
    return [text[:limit] for text in texts]
