"""Decides what an erasure erases: the rows, the entries of the quarantine, the selectors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.erasure.matching import entry_matches
from headrace.erasure.recognition import KnownSubjects, property_selectors
from headrace.erasure.statements import (
    compared_column,
    count_rows,
    find_days,
    find_properties,
    find_rows,
    find_values,
    find_visitors,
)
from headrace.erasure.subjects import hash_prefixes, subject_of
from headrace.formats.row_ids import receipt_time_ms
from headrace.model.catalog import EVENTS, STORED_TABLES, Table
from headrace.model.erasure import WHOLE_WEBSITE, Selector, SelectorKind
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry
from headrace.ports.rows.erasure import (
    ErasableEntries,
    Erasure,
    ErasurePlan,
    RowFinder,
    RowsToErase,
)
from headrace.ports.store import Dialect


class ErasurePlanner:
    """Reads store and quarantine; blocking. Everything that is durable must be loaded."""

    def __init__(self, *, finder: RowFinder, entries: ErasableEntries, dialect: Dialect) -> None:
        self._finder = finder
        self._entries = entries
        self._dialect = dialect

    def plan(
        self,
        website_id: str,
        selectors: Sequence[Selector],
        log_ends: Mapping[str, LogOffset],
        *,
        received_until_ms: int | None = None,
    ) -> ErasurePlan:
        """Return what an erasure of these selectors erases now.

        Rows that were received later than `received_until_ms` stay. Entries of the quarantine do
        not: their time of receipt is not known.
        """
        tables = tuple(
            rows
            for table in STORED_TABLES
            if (rows := self._rows(table, website_id, selectors, received_until_ms)).rows
        )
        return ErasurePlan(
            selectors=(*selectors, *_selectors_of_rows(selectors, tables)),
            tables=tables,
            quarantined=tuple(
                self._entries.find(lambda entry: entry_matches(entry, website_id, selectors))
            ),
            log_ends=log_ends,
            received_until_ms=received_until_ms,
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
        self, erasure: Erasure, key: bytes, kept_selectors: Callable[[], Iterable[Selector]]
    ) -> tuple[Selector, ...]:
        """Return the selectors of an erasure, whose values are looked for in all that is kept.

        `kept_selectors` looks for them in what is neither in the store nor in the quarantine.
        """
        digests: dict[SelectorKind, list[str]] = {}
        for subject in erasure.subjects:
            digests.setdefault(subject.kind, []).append(subject.digest)
        stored = {
            selector
            for kind, wanted in digests.items()
            for selector in self._resolve_kind(erasure.website_id, kind, wanted, key)
        }
        return tuple({*stored, *kept_selectors(), *self._quarantined_selectors(erasure, key)})

    def _quarantined_selectors(self, erasure: Erasure, key: bytes) -> set[Selector]:
        """Return the selectors of items that the store rejected: it does not have their values."""
        known = KnownSubjects(key, erasure.website_id, [erasure])
        resolved: set[Selector] = set()

        def collect(entry: QuarantineEntry | bytes) -> bool:
            if not isinstance(entry, bytes) and entry.item is not None:
                item = entry.item
                if item.get("website_id") == erasure.website_id:
                    resolved.update(known.selectors_in(item, received_ms=0))
            return False

        self._entries.find(collect)
        return resolved

    def _rows(
        self,
        table: Table,
        website_id: str,
        selectors: Sequence[Selector],
        received_until_ms: int | None,
    ) -> RowsToErase:
        if WHOLE_WEBSITE in selectors:
            ((count,),) = self._finder.select(count_rows(table, website_id))
            return RowsToErase(table.name, int(count))
        query = find_rows(table, website_id, selectors, self._dialect)
        found: Sequence[Sequence[Any]] = () if query is None else self._finder.select(query)
        rows = [(bytes.fromhex(row_id), int(at_ms)) for row_id, at_ms in found]
        if received_until_ms is not None:
            rows = [row for row in rows if receipt_time_ms(row[0]) <= received_until_ms]
        ids = tuple(row_id for row_id, _ in rows)
        times_ms = [at_ms for _, at_ms in rows]
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
        """Read the properties of one day after the other: all at once may exceed the memory."""
        days = [int(day) for (day,) in self._finder.select(find_days(EVENTS, website_id))]
        return {
            selector
            for day in days
            for (document,) in self._finder.select(find_properties(EVENTS, website_id, day))
            for selector in property_selectors(document.encode())
            if subject_of(key, website_id, selector).digest in digests
        }

    def close(self) -> None:
        """Close the connections of the finder. May be called twice."""
        self._finder.close()


def _selectors_of_rows(
    selectors: Sequence[Selector], tables: Sequence[RowsToErase]
) -> Sequence[Selector]:
    """Return selectors of the rows of event ids, by which a copy of such a row is recognized.

    A copy from elsewhere, such as an export, has the id of its row and not the event id.
    """
    if not all(selector.kind is SelectorKind.EVENT_ID for selector in selectors):
        return ()
    found = {row_id.hex() for rows in tables for row_id in rows.ids}
    sent = {selector.value for selector in selectors}
    return [Selector(SelectorKind.EVENT_ID, row_id) for row_id in sorted(found - sent)]
