"""Converts the items of a batch to the columns of the stored tables. Pure.

One comprehension per column, over parallel lists. Each names its attribute: `attrgetter` takes
twice as long.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeAlias

from msgspec import Struct

from headrace.ingest.load.batch import Batch, ItemT
from headrace.ingest.load.property_columns import (
    NOTHING_PROMOTED,
    Promoted,
    normalize_url,
    promote_properties,
    utm_parameters,
)
from headrace.model.catalog import (
    MAX_MESSAGE_LENGTH,
    MAX_STACK_LENGTH,
    MAX_URL_LENGTH,
    PROMOTED_COLUMNS,
    Kind,
    Table,
)
from headrace.model.log_records import ErrorEvent, Event, EventKind, Visitor, Vital
from headrace.model.storage import TABLE_OF_KIND

Columns = Mapping[str, Sequence[Any]]
"""Values by the stored column's name, of equal length: texts, floats or None, epoch milliseconds,
booleans, sixteen bytes for `id`, JSON text as bytes for `properties`.

An absent column is missing in every row: "", None or False.
"""

_VISITOR_COLUMNS = tuple(Visitor.__struct_fields__)
_PROMOTED = tuple(column for column in PROMOTED_COLUMNS if column.name not in {"path", "url"})


def event_columns(batch: Batch[Event]) -> Columns:
    """Return the columns of `events`."""
    items = batch.items
    promoted_rows, paths, urls = _normalize_events(items)
    return {
        **_shared_columns(batch, paths, urls),
        **_promoted_columns(promoted_rows),
        "event_name": [item.name for item in items],
        "namespace": [item.namespace for item in items],
        "source": [item.source for item in items],
        "profile_id": [item.profile_id for item in items],
        "received_at": batch.received_ms,
        "properties": [item.properties for item in items],
    }


def vital_columns(batch: Batch[Vital]) -> Columns:
    """Return the columns of `performance`."""
    items = batch.items
    return {
        **_shared_columns(batch, *_normalize_pages(items)),
        "metric_name": [item.metric_name for item in items],
        "metric_value": [item.metric_value for item in items],
    }


def error_columns(batch: Batch[ErrorEvent]) -> Columns:
    """Return the columns of `errors`."""
    items = batch.items
    return {
        **_shared_columns(batch, *_normalize_pages(items)),
        "stack": [item.stack[:MAX_STACK_LENGTH] for item in items],
        "message": [item.message[:MAX_MESSAGE_LENGTH] for item in items],
        "level": [item.level for item in items],
        "error_type": [item.error_type for item in items],
        "filename": [item.filename for item in items],
        "lineno": [item.lineno for item in items],
        "colno": [item.colno for item in items],
    }


class TableMapping(Struct, Generic[ItemT], frozen=True):
    """The table of a kind of items, and their conversion to its columns."""

    table: Table
    columns: Callable[[Batch[ItemT]], Columns]


TABLE_MAPPINGS: Mapping[EventKind, TableMapping[Any]] = {
    EventKind.EVENTS: TableMapping(TABLE_OF_KIND[EventKind.EVENTS], event_columns),
    EventKind.VITALS: TableMapping(TABLE_OF_KIND[EventKind.VITALS], vital_columns),
    EventKind.ERRORS: TableMapping(TABLE_OF_KIND[EventKind.ERRORS], error_columns),
}


def _normalize_events(items: Sequence[Event]) -> tuple[list[Promoted], list[str], list[str]]:
    promoted_rows = [
        promote_properties(item) if item.properties or item.promoted else NOTHING_PROMOTED
        for item in items
    ]
    present = _present_names(promoted_rows)
    paths, urls = [item.path for item in items], [item.url for item in items]
    if "path" in present:
        paths = [
            value or promoted.get("path") or ""
            for value, promoted in zip(paths, promoted_rows, strict=True)
        ]
    if "url" in present:
        urls = [
            value or promoted.get("url") or ""
            for value, promoted in zip(urls, promoted_rows, strict=True)
        ]
    cache: dict[tuple[str, str], _Page] = {}  # pages repeat often
    for number, page in enumerate(zip(paths, urls, strict=True)):
        path, url = page
        if (url and not path) or "?" in url or path[:4].lower() == "http":
            if page not in cache:
                cache[page] = _normalize_page(path, url)
            paths[number], urls[number], utm = cache[page]
            if utm:
                promoted_rows[number] = _with_utm(promoted_rows[number], utm)
    return promoted_rows, paths, urls


_Page: TypeAlias = tuple[str, str, Mapping[str, str]]
"""Path, URL and the utm values of the URL's query."""


def _normalize_page(path: str, url: str) -> _Page:
    path, url = normalize_url(path, url)
    return path, url, utm_parameters(url) if "?" in url else {}


def _with_utm(promoted: Promoted, utm: Mapping[str, str]) -> Promoted:
    missing = {name: value for name, value in utm.items() if not promoted.get(name)}
    return {**promoted, **missing}


def _normalize_pages(items: Sequence[Vital] | Sequence[ErrorEvent]) -> tuple[list[str], list[str]]:
    pages = [normalize_url(item.path, item.url) for item in items]
    return [path for path, _ in pages], [url for _, url in pages]


def _promoted_columns(promoted_rows: Sequence[Promoted]) -> dict[str, Sequence[Any]]:
    present = _present_names(promoted_rows)
    columns: dict[str, Sequence[Any]] = {}
    for column in _PROMOTED:
        name = column.name
        if name in present and column.kind is Kind.TEXT:
            texts = [promoted.get(name) or "" for promoted in promoted_rows]
            columns[name] = _truncate(texts, column.max_length)
        elif name in present:
            columns[name] = [promoted.get(name) for promoted in promoted_rows]
    return columns


def _present_names(promoted_rows: Sequence[Promoted]) -> frozenset[str]:
    return frozenset[str]().union(*promoted_rows)


def _shared_columns(
    batch: Batch[Any], paths: Sequence[str], urls: Sequence[str]
) -> dict[str, Sequence[Any]]:
    items = batch.items
    return {
        "id": batch.ids,
        "website_id": [item.website_id for item in items],
        "anonymous_id": [item.anonymous_id for item in items],
        "session_id": [item.session_id for item in items],
        "path": _truncate(paths, MAX_URL_LENGTH),
        "url": _truncate(urls, MAX_URL_LENGTH),
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


def _truncate(texts: Sequence[str], limit: int) -> Sequence[str]:
    if max(map(len, texts), default=0) <= limit:
        return texts
    return [text[:limit] for text in texts]
