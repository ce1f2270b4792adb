"""From the items of a batch to the columns of the stored tables. Pure.

One comprehension a column; what differs between items stands in parallel lists.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic

from msgspec import Struct

from millrace.ingest.batch import Batch, ItemT
from millrace.ingest.lift import NOTHING_LIFTED, Lifted, lift, lift_campaign, settle_page
from millrace.model.catalog import ERRORS, EVENTS, LIFTED_COLUMNS, PERFORMANCE, Table
from millrace.model.event import ErrorEvent, Event, Stream, Visitor, Vital

Columns = Mapping[str, Sequence[Any]]
"""Values by the stored column's name, all equally long: texts, floats or None, epoch milliseconds,
booleans, sixteen bytes for `id`, JSON text as bytes for `properties`."""

_VISITOR_COLUMNS = tuple(Visitor.__struct_fields__)
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
    Stream.EVENTS: Shape(EVENTS, event_columns),
    Stream.VITALS: Shape(PERFORMANCE, vital_columns),
    Stream.ERRORS: Shape(ERRORS, error_columns),
}


def _settle_events(items: Sequence[Event]) -> tuple[list[Lifted], list[str], list[str]]:
    lifteds: list[Lifted] = []
    paths: list[str] = []
    urls: list[str] = []
    for item in items:
        lifted = lift(item) if item.properties or item.lifted else NOTHING_LIFTED
        path, url = item.path or lifted.path, item.url or lifted.url
        if url or path.startswith("http"):
            path, url = settle_page(path, url)
            if "?" in url:
                lifted = lift_campaign(lifted, url)
        lifteds.append(lifted)
        paths.append(path)
        urls.append(url)
    return lifteds, paths, urls


def _settle_pages(items: Sequence[Vital] | Sequence[ErrorEvent]) -> tuple[list[str], list[str]]:
    pages = [settle_page(item.path, item.url) for item in items]
    return [path for path, _ in pages], [url for _, url in pages]


def _lifted_columns(lifteds: Sequence[Lifted]) -> dict[str, Sequence[Any]]:
    names = [column.name for column in LIFTED_COLUMNS if column.name not in {"path", "url"}]
    if all(lifted is NOTHING_LIFTED for lifted in lifteds):
        return {name: [getattr(NOTHING_LIFTED, name)] * len(lifteds) for name in names}
    return {name: list(map(attrgetter(name), lifteds)) for name in names}


def _shared_columns(
    batch: Batch[Any], paths: Sequence[str], urls: Sequence[str]
) -> dict[str, Sequence[Any]]:
    items, visitors = batch.items, batch.visitors
    return {
        "id": batch.ids,
        "website_id": [item.website_id for item in items],
        "anonymous_id": [item.anonymous_id for item in items],
        "session_id": [item.session_id for item in items],
        "path": [path[:_PAGE_LIMIT] for path in paths],
        "url": [url[:_PAGE_LIMIT] for url in urls],
        "time": [item.time_ms for item in items],
        **{name: list(map(attrgetter(name), visitors)) for name in _VISITOR_COLUMNS},
    }
