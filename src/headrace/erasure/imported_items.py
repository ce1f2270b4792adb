"""Decides which items of an import were erased before: they must not come back."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from headrace.erasure.recognition import KnownSubjects
from headrace.formats.row_ids import receipt_time_ms
from headrace.model.imports import ImportItem
from headrace.model.log_records import Event
from headrace.ports.rows.erasure import ErasureStore

_EVENT_FIELDS: Final = Event.__struct_fields__


class ErasedImportItems:
    """Recognizes erased items of one website by the keyed hashes of their identifiers.

    An item is erased if its row was received before the erasure was asked for: rows of the same
    visitor that came later are stored, as those of requests are.
    """

    def __init__(self, erasures: ErasureStore, website_id: str) -> None:
        self._erasures = erasures
        self._website_id = website_id
        self._ids: Collection[str] = ()
        self._known: KnownSubjects | None = None

    def without_erased(self, items: Sequence[ImportItem]) -> Sequence[ImportItem]:
        """Return the items that are not erased, by the erasures of now.

        Blocking. Raises `StoreUnavailable` where the erasures cannot be read.
        """
        self._read_new()
        known = self._known
        if known is None:
            return items
        return [item for item in items if not _is_erased(item, known)]

    def _read_new(self) -> None:
        ids = self._erasures.ids()
        if ids == self._ids:
            return
        erasures = [one for one in self._erasures.all() if one.website_id == self._website_id]
        self._ids = ids
        self._known = (
            KnownSubjects(self._erasures.key(), self._website_id, erasures) if erasures else None
        )


def _is_erased(item: ImportItem, known: KnownSubjects) -> bool:
    fields = {**_fields_of(item.value), "id": item.row_id.hex()}
    received_ms = receipt_time_ms(item.row_id)
    return any(True for _ in known.selectors_in(fields, received_ms=received_ms))


def _fields_of(value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - an item of a log record
    if isinstance(value, tuple):
        values = cast("tuple[object, ...]", value)
        return dict(zip(_EVENT_FIELDS, values, strict=False))
    return msgspec.structs.asdict(value)
