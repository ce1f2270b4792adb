"""Shows everything that is stored of a visitor, session, profile or event: what erasing would take.

One JSON object for each row: its table and all of its columns. Rows that retention hides are shown,
because they are still stored.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from headrace.base.clock import utc_datetime
from headrace.erasure.matching import entry_matches
from headrace.erasure.receipt import QUARANTINE
from headrace.erasure.statements import find_visitors, show_rows
from headrace.model.catalog import STORED_TABLES, Kind, Table
from headrace.model.erasure import Selector, SelectorKind
from headrace.model.storage import STORAGE_TABLES, StoredColumn
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.rows.export import ExportStore
from headrace.ports.store import Dialect, QueryLimits

_TIMEOUT_S: Final = 300.0
_MAX_ROWS: Final = 10_000_000

ReadEntries = Callable[[], Iterable[QuarantineEntry]]
"""Returns the entries of the quarantine that can be decoded. Blocking."""


class SubjectAccess(Protocol):
    """Shows what is stored of a subject: `SubjectAccessService`."""

    def lines(
        self, website_id: str, selectors: Sequence[Selector], *, with_visitors: bool = False
    ) -> AsyncGenerator[bytes]:
        """Return a JSON object for each row, each with a line feed.

        Rows are those that one of the selectors selects. With `with_visitors` the selectors are of
        profiles, and the rows of all anonymous ids that their rows have are shown, too.
        """
        ...


class SubjectAccessService:
    """Reads the store and the quarantine; for one event loop and many tasks."""

    def __init__(
        self,
        store: ExportStore,
        *,
        dialect: Dialect,
        read_entries: ReadEntries,
        max_memory_bytes: int,
    ) -> None:
        self._store = store
        self._dialect = dialect
        self._read_entries = read_entries
        self._limits = QueryLimits(_TIMEOUT_S, max_memory_bytes, _MAX_ROWS)

    async def lines(
        self, website_id: str, selectors: Sequence[Selector], *, with_visitors: bool = False
    ) -> AsyncGenerator[bytes]:
        """Return a line for each row that was acknowledged before the call.

        Raises `StoreUnavailable` before the first line, or what `ExportStore.rows` raises.
        """
        async with self._store.open(website_id):
            if with_visitors:
                selectors = [*selectors, *await self._visitors(website_id, selectors)]
            for table in STORED_TABLES:
                query = show_rows(table, website_id, selectors, self._dialect)
                if query is not None:
                    for row in await self._store.rows(query, self._limits):
                        yield encode_line(table, row)
        for entry in await asyncio.to_thread(lambda: list(self._read_entries())):
            if entry.item is not None and entry_matches(entry, website_id, selectors):
                yield msgspec.json.encode({"table": QUARANTINE, **_shown_item(entry)}) + b"\n"

    async def _visitors(self, website_id: str, profiles: Sequence[Selector]) -> Sequence[Selector]:
        """Return the selectors of the visitors that the rows of profiles have."""
        return [
            Selector(SelectorKind.ANONYMOUS_ID, value)
            for profile in profiles
            for (value,) in await self._store.rows(
                find_visitors(website_id, str(profile.value)), self._limits
            )
        ]


def encode_line(table: Table, row: Sequence[Any]) -> bytes:
    """Encode a row of `show_rows`."""
    columns = STORAGE_TABLES[table.name].shown_columns
    fields = {
        column.name: _shown(column, value) for column, value in zip(columns, row, strict=True)
    }
    return msgspec.json.encode({"table": table.name, **fields}) + b"\n"


def _shown(column: StoredColumn, value: Any) -> object:  # noqa: ANN401 - any value of the store
    match column.kind:
        case Kind.DATETIME:
            return utc_datetime(int(value)).isoformat(timespec="milliseconds")[:-6] + "Z"
        case Kind.JSON:
            return msgspec.Raw(value.encode()) if value else None
        case _:
            return value


def _shown_item(entry: QuarantineEntry) -> dict[str, object]:
    shown: dict[str, object] = dict(entry.item or {})
    properties = shown.get("properties")
    if isinstance(properties, bytes):
        shown["properties"] = msgspec.Raw(properties) if properties else None
    return {**shown, "reason": entry.reason}
