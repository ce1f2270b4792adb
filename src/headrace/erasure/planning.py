"""Decides what an erasure erases: the rows, the entries of the quarantine, the selectors."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from headrace.erasure.matching import entry_matches
from headrace.erasure.statements import (
    compared_column,
    count_rows,
    find_properties,
    find_rows,
    find_values,
    find_visitors,
)
from headrace.erasure.subjects import hash_prefixes, subject_of
from headrace.model.catalog import EVENTS, STORED_TABLES, Table
from headrace.model.erasure import COLUMN_OF_KIND, WHOLE_WEBSITE, Selector, SelectorKind, Subject
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.rows.erasure import ErasableEntries, ErasurePlan, RowFinder, RowsToErase
from headrace.ports.store import Dialect


class ErasurePlanner:
    """Reads store and quarantine; blocking. Everything that is durable must be loaded."""

    def __init__(self, *, finder: RowFinder, entries: ErasableEntries, dialect: Dialect) -> None:
        self._finder = finder
        self._entries = entries
        self._dialect = dialect

    def plan(
        self, website_id: str, selectors: Sequence[Selector], log_ends: Mapping[str, LogOffset]
    ) -> ErasurePlan:
        """Return what an erasure of these selectors erases now."""
        return ErasurePlan(
            selectors=tuple(selectors),
            tables=tuple(
                rows
                for table in STORED_TABLES
                if (rows := self._rows(table, website_id, selectors)).rows
            ),
            quarantined=tuple(
                self._entries.find(lambda entry: entry_matches(entry, website_id, selectors))
            ),
            log_ends=log_ends,
        )

    def visitors(self, website_id: str, profiles: Sequence[Selector]) -> tuple[Selector, ...]:
        """Return the selectors of the visitors that the rows of profiles have."""
        return tuple(
            Selector(SelectorKind.ANONYMOUS_ID, value)
            for profile in profiles
            if compared_column(EVENTS, profile) is not None
            for (value,) in self._finder.select(find_visitors(website_id, str(profile.value)))
        )

    def resolve(
        self, website_id: str, subjects: Iterable[Subject], key: bytes
    ) -> tuple[Selector, ...]:
        """Return the selectors of subjects, whose values are looked for in all that is kept."""
        digests: dict[SelectorKind, list[str]] = {}
        for subject in subjects:
            digests.setdefault(subject.kind, []).append(subject.digest)
        stored = {
            selector
            for kind, wanted in digests.items()
            for selector in self._resolve_kind(website_id, kind, wanted, key)
        }
        return tuple(stored | self._resolve_quarantined(website_id, digests, key))

    def _resolve_quarantined(
        self, website_id: str, digests: Mapping[SelectorKind, Sequence[str]], key: bytes
    ) -> set[Selector]:
        """Return the selectors of items that the store rejected: it does not have their values."""
        resolved: set[Selector] = set()

        def collect(entry: QuarantineEntry | bytes) -> bool:
            for selector in selectors_of(entry, website_id):
                wanted = digests.get(selector.kind, ())
                if subject_of(key, website_id, selector).digest in wanted:
                    resolved.add(selector)
            return False

        self._entries.find(collect)
        return resolved

    def _rows(self, table: Table, website_id: str, selectors: Sequence[Selector]) -> RowsToErase:
        if WHOLE_WEBSITE in selectors:
            ((rows,),) = self._finder.select(count_rows(table, website_id))
            return RowsToErase(table.name, int(rows))
        query = find_rows(table, website_id, selectors, self._dialect)
        found: Sequence[Sequence[Any]] = () if query is None else self._finder.select(query)
        ids = tuple(bytes.fromhex(row_id) for row_id, _ in found)
        times_ms = [int(at_ms) for _, at_ms in found]
        return RowsToErase(
            table.name, len(ids), ids, min(times_ms, default=0), max(times_ms, default=0)
        )

    def _resolve_kind(
        self, website_id: str, kind: SelectorKind, digests: Sequence[str], key: bytes
    ) -> set[Selector]:
        if kind is SelectorKind.WEBSITE:
            return {WHOLE_WEBSITE}
        if kind is SelectorKind.PROPERTY:
            return self._resolve_properties(website_id, digests, key)
        prefixes = hash_prefixes(key, website_id, kind)
        return {
            Selector(kind, value)
            for table in STORED_TABLES
            if (column := compared_column(table, Selector(kind))) is not None
            for (value,) in self._finder.select(
                find_values(table, website_id, column, prefixes, digests)
            )
        }

    def _resolve_properties(
        self, website_id: str, digests: Sequence[str], key: bytes
    ) -> set[Selector]:
        documents = self._finder.select(find_properties(EVENTS, website_id))
        return {
            selector
            for (document,) in documents
            for selector in property_selectors(document.encode())
            if subject_of(key, website_id, selector).digest in digests
        }


def selectors_of(entry: QuarantineEntry | bytes, website_id: str) -> Iterator[Selector]:
    """Yield all selectors that select an item of the quarantine."""
    if isinstance(entry, bytes) or entry.item is None:
        return
    item = entry.item
    if item.get("website_id") != website_id:
        return
    for kind, field in {**COLUMN_OF_KIND, SelectorKind.EVENT_ID: "event_id"}.items():
        if value := item.get(field):
            yield Selector(kind, value)
    yield from property_selectors(item.get("properties") or b"")


def property_selectors(document: bytes) -> Iterator[Selector]:
    """Yield a selector for each scalar of a JSON object, by its key or its path."""
    try:
        decoded: dict[str, Any] = msgspec.json.decode(document)
    except msgspec.MsgspecError:
        return
    pending = list(decoded.items())
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            nested = cast("dict[str, Any]", value)  # JSON has no other keys
            pending += [(f"{name}.{inner}", found) for inner, found in nested.items()]
        elif isinstance(value, str | bool | int | float):
            yield Selector(SelectorKind.PROPERTY, value, name)
