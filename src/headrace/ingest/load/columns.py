"""Converts the items of a batch to the columns of the stored tables. Pure.

The fields of all items become columns in one step, and what repeats in a batch, such as pages and
visitors, is converted once for each different value.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Generic, TypeAlias

import msgspec
from msgspec import Struct

from headrace.formats.event_ids import event_keys
from headrace.formats.indexed_column import ROW_INDEX_TYPE, IndexedColumn
from headrace.ingest.load.batch import Batch, ItemT
from headrace.ingest.load.property_columns import (
    Promoted,
    normalize_url,
    promote_batch,
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
from headrace.model.storage import EVENT_KEY, TABLE_OF_KIND

Columns = Mapping[str, Sequence[Any]]
"""Values by the stored column's name, of equal length: texts, floats or None, epoch milliseconds,
booleans, sixteen bytes for `id`, eight for `event_key`, JSON text as bytes for `properties`.

An absent column is missing in every row: "", None or False.
"""

_VISITOR_COLUMNS = tuple(Visitor.__struct_fields__)
_get_value = dict[str, Any].get
_PROMOTED = tuple(column for column in PROMOTED_COLUMNS if column.name not in {"path", "url"})


def event_columns(batch: Batch[Event]) -> Columns:
    """Return the columns of `events`."""
    fields = _fields(Event, batch)
    promoted_rows, paths, urls = _normalize_events(fields)
    return {
        **_shared_columns(batch, fields, paths, urls),
        **_promoted_columns(promoted_rows, are_limited=not any(fields["promoted"])),
        "event_name": fields["name"],
        "namespace": fields["namespace"],
        "source": fields["source"],
        "profile_id": fields["profile_id"],
        "received_at": batch.received_ms,
        "properties": fields["properties"],
    }


def vital_columns(batch: Batch[Vital]) -> Columns:
    """Return the columns of `performance`."""
    fields = _fields(Vital, batch)
    paths, urls, _ = _normalize_pages(fields["path"], fields["url"])
    return {
        **_shared_columns(batch, fields, paths, urls),
        "metric_name": fields["metric_name"],
        "metric_value": fields["metric_value"],
    }


def error_columns(batch: Batch[ErrorEvent]) -> Columns:
    """Return the columns of `errors`."""
    fields = _fields(ErrorEvent, batch)
    paths, urls, _ = _normalize_pages(fields["path"], fields["url"])
    return {
        **_shared_columns(batch, fields, paths, urls),
        "stack": [text[:MAX_STACK_LENGTH] for text in fields["stack"]],
        "message": [text[:MAX_MESSAGE_LENGTH] for text in fields["message"]],
        "level": fields["level"],
        "error_type": fields["error_type"],
        "filename": fields["filename"],
        "lineno": fields["lineno"],
        "colno": fields["colno"],
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


def _fields(item: type[Event | Vital | ErrorEvent], batch: Batch[Any]) -> Columns:
    """Return the fields of all items by name. Reading them one by one takes twice as long."""
    names = item.__struct_fields__
    if not batch.items:
        return dict.fromkeys(names, ())
    values = zip(*map(msgspec.structs.astuple, batch.items), strict=True)
    return dict(zip(names, values, strict=True))


def _normalize_events(fields: Columns) -> tuple[list[Promoted], Sequence[str], Sequence[str]]:
    promoted_rows = promote_batch(fields["properties"], fields["promoted"])
    present = _present_names(promoted_rows)
    paths, urls = (
        [
            value or row.get(name) or ""
            for value, row in zip(fields[name], promoted_rows, strict=True)
        ]
        if name in present
        else fields[name]
        for name in ("path", "url")
    )
    paths, urls, utm_rows = _normalize_pages(paths, urls)
    for number, utm in utm_rows.items():
        promoted_rows[number] = _with_utm(promoted_rows[number], utm)
    return promoted_rows, paths, urls


_Page: TypeAlias = tuple[str, str, Mapping[str, str]]
"""Path, URL and the utm values of the URL's query."""


def _normalize_pages(
    paths: Sequence[str], urls: Sequence[str]
) -> tuple[Sequence[str], Sequence[str], Mapping[int, Mapping[str, str]]]:
    """Return the paths and URLs of rows, and the utm values of the rows that have some.

    Most pages stay as they are, and those that do not repeat often.
    """
    utm_rows: dict[int, Mapping[str, str]] = {}
    if _are_normal(paths, urls):
        return paths, urls, utm_rows
    new_paths, new_urls = list(paths), list(urls)
    cache: dict[tuple[str, str], _Page] = {}
    for number, page in enumerate(zip(paths, urls, strict=True)):
        path, url = page
        if "?" in url or not path or "://" in path or len(path) + len(url) > MAX_URL_LENGTH:
            normal = cache.get(page)
            if normal is None:
                normal = cache[page] = _normalize_page(path, url)
            new_paths[number], new_urls[number], utm = normal
            if utm:
                utm_rows[number] = utm
    return new_paths, new_urls, utm_rows


def _are_normal(paths: Sequence[str], urls: Sequence[str]) -> bool:
    """Return whether no page changes: in a few steps for all rows, so not for every such batch."""
    if any(urls) and not (all(paths) and "?" not in "".join(urls) and _are_short(urls)):
        return False
    return "://" not in "".join(paths) and _are_short(paths)


def _are_short(texts: Sequence[str]) -> bool:
    return max(map(len, texts), default=0) <= MAX_URL_LENGTH


def _normalize_page(path: str, url: str) -> _Page:
    path, url = normalize_url(path, url)
    utm: Mapping[str, str] = utm_parameters(url) if "?" in url else {}
    return path[:MAX_URL_LENGTH], url[:MAX_URL_LENGTH], utm


def _with_utm(promoted: Promoted, utm: Mapping[str, str]) -> Promoted:
    missing = {name: value for name, value in utm.items() if not promoted.get(name)}
    return {**promoted, **missing} if missing else promoted


def _promoted_columns(
    promoted_rows: Sequence[Promoted], *, are_limited: bool
) -> dict[str, Sequence[Any]]:
    present = _present_names(promoted_rows)
    columns: dict[str, Sequence[Any]] = {}
    for column in _PROMOTED:
        name = column.name
        if name in present and column.kind is Kind.TEXT:
            texts = [row.get(name) or "" for row in promoted_rows]
            columns[name] = texts if are_limited else _truncate(texts, column.max_length)
        elif name in present:
            columns[name] = list(map(_get_value, promoted_rows, repeat(name)))
    return columns


def _present_names(promoted_rows: Sequence[Promoted]) -> frozenset[str]:
    return frozenset[str]().union(*promoted_rows)


def _shared_columns(
    batch: Batch[Any], fields: Columns, paths: Sequence[str], urls: Sequence[str]
) -> dict[str, Sequence[Any]]:
    return {
        "id": batch.ids,
        "website_id": fields["website_id"],
        "anonymous_id": fields["anonymous_id"],
        "session_id": fields["session_id"],
        "path": paths,
        "url": urls,
        "time": fields["time_ms"],
        **_visitor_columns(batch, fields["visitor"]),
        **_event_keys(batch.digests),
    }


def _event_keys(digests: Sequence[bytes]) -> dict[str, Sequence[Any]]:
    return {EVENT_KEY.name: event_keys(digests)} if any(digests) else {}


def _visitor_columns(batch: Batch[Any], own: Sequence[Visitor | None]) -> dict[str, Sequence[Any]]:
    """Return the columns of the visitors; `own` has those that items do not share."""
    visitors: Sequence[Visitor] = list(batch.visitors)
    numbers = batch.visitor_numbers
    if any(own):
        visitors = [one or visitors[number] for one, number in zip(own, numbers, strict=True)]
    columns = {name: list(map(attrgetter(name), visitors)) for name in _VISITOR_COLUMNS}
    filled: dict[str, Sequence[Any]] = {
        name: values for name, values in columns.items() if any(values)
    }
    if any(own):
        return filled
    indexes = array(ROW_INDEX_TYPE, numbers)
    return {name: IndexedColumn(values, indexes) for name, values in filled.items()}


def _truncate(texts: Sequence[str], limit: int) -> Sequence[str]:
    if max(map(len, texts), default=0) <= limit:
        return texts
    return [text[:limit] for text in texts]
