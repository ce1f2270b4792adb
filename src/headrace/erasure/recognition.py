"""Recognizes items by the subjects of erasures, where the identifiers themselves are gone. Pure."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from headrace.erasure.matching import value_at
from headrace.erasure.subjects import subject_of
from headrace.model.erasure import COLUMN_OF_KIND, Selector, SelectorKind
from headrace.ports.rows.erasure import Erasure

_EVENT_ID: Final = "event_id"
"""The field of an item for which its row has an `id`."""


class KnownSubjects:
    """The subjects of erasures of one website, by the values that they stand for."""

    def __init__(self, key: bytes, website_id: str, erasures: Iterable[Erasure]) -> None:
        self._key = key
        self._website_id = website_id
        self._requested_ms: dict[SelectorKind, dict[str, int]] = {}
        for erasure in erasures:
            for subject in erasure.subjects:
                digests = self._requested_ms.setdefault(subject.kind, {})
                digests[subject.digest] = max(erasure.requested_ms, digests.get(subject.digest, 0))

    def selectors_in(self, item: Mapping[str, Any], *, received_ms: int) -> Iterator[Selector]:
        """Yield the selectors of an item that was received before somebody had them erased.

        The item has the names of the fields of logged items, and may have the `id` of its row.
        """
        for selector in selectors_of(item, self._requested_ms):
            digest = subject_of(self._key, self._website_id, selector).digest
            if received_ms <= self._requested_ms[selector.kind].get(digest, -1):
                yield selector


def selectors_of(
    item: Mapping[str, Any], kinds: Container[SelectorKind] = frozenset(SelectorKind)
) -> Iterator[Selector]:
    """Yield all selectors of these kinds that select an item."""
    for kind, field in COLUMN_OF_KIND.items():
        if kind in kinds and (value := item.get(field)):
            yield Selector(kind, value)
    if SelectorKind.EVENT_ID in kinds and (sent := item.get(_EVENT_ID)):
        yield Selector(SelectorKind.EVENT_ID, sent)
    if SelectorKind.PROPERTY in kinds:
        yield from property_selectors(item.get("properties") or b"")


def property_selectors(document: bytes) -> Iterator[Selector]:
    """Yield a selector for each scalar of a JSON object, by its key or its path.

    A path is none of a selector where another key hides it, or where a name in it has a dot.
    """
    try:
        decoded = msgspec.json.decode(document)
    except msgspec.MsgspecError:
        return
    # JSON has no other keys
    whole = cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {}
    pending = list(whole.items())
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            nested = cast("dict[str, Any]", value)
            pending += [(f"{name}.{inner}", found) for inner, found in nested.items()]
        elif isinstance(value, str | bool | int | float) and value_at(whole, name) is value:
            yield Selector(SelectorKind.PROPERTY, value, name)
