"""Decides whether an item of a log, or of the quarantine, is one that a selector selects. Pure.

Rows of the store are selected by the same rules in SQL: see `statements`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from headrace.model.erasure import COLUMN_OF_KIND, Selector, SelectorKind
from headrace.model.plan import FilterScalar
from headrace.ports.quarantine import QuarantineEntry

_MIN_SEARCHED_BYTES = 4
"""A shorter text occurs in unrelated bytes too often."""

_DOT = "."
_NOT_SEARCHABLE = frozenset({SelectorKind.PROPERTY, SelectorKind.WEBSITE})


def item_matches(item: Mapping[str, Any], website_id: str, selectors: Sequence[Selector]) -> bool:
    """Return whether one of the selectors selects an item, given by its fields."""
    if item.get("website_id") != website_id:
        return False
    return any(_matches(item, selector) for selector in selectors)


def bytes_match(content: bytes, website_id: str, selectors: Sequence[Selector]) -> bool:
    """Return whether bytes that cannot be decoded contain the website and what a selector selects.

    Texts shorter than four bytes are not searched for: unrelated bytes contain them, too.
    """
    if website_id.encode() not in content:
        return False
    return any(_occurs(content, selector) for selector in selectors)


def entry_matches(
    entry: QuarantineEntry | bytes, website_id: str, selectors: Sequence[Selector]
) -> bool:
    """Return whether an entry of the quarantine is selected; without an item, by its bytes."""
    if isinstance(entry, bytes):
        return bytes_match(entry, website_id, selectors)
    if entry.item is not None:
        return item_matches(entry.item, website_id, selectors)
    return bytes_match(entry.payload or b"", website_id, selectors)


def may_match(payload: bytes, selectors: Sequence[Selector]) -> bool:
    """Return whether a record may have a selected item; cheaper than decoding it.

    Texts stand in a record as they are, except within properties, which JSON may escape.
    """
    return any(
        selector.kind in _NOT_SEARCHABLE or str(selector.value).encode() in payload
        for selector in selectors
    )


def _matches(item: Mapping[str, Any], selector: Selector) -> bool:
    match selector.kind:
        case SelectorKind.WEBSITE:
            return True
        case SelectorKind.PROPERTY:
            return property_matches(item.get("properties") or b"", selector.key, selector.value)
        case SelectorKind.EVENT_ID:
            return item.get("event_id") == selector.value
        case _:
            return item.get(COLUMN_OF_KIND[selector.kind]) == selector.value


def property_matches(properties: bytes, key: str, value: FilterScalar) -> bool:
    """Return whether a JSON object has a value at a key, or at the path that a dotted key is."""
    try:
        document = msgspec.json.decode(properties)
    except msgspec.MsgspecError:
        return False
    return _is_equal(value_at(document, key), value)


def value_at(document: object, key: str) -> object:
    """Return the value at a key of a JSON object, else at the path that a dotted key is."""
    whole = _fields_of(document)
    if key in whole or _DOT not in key:
        return whole.get(key)
    found = document
    for name in key.split(_DOT):
        found = _fields_of(found).get(name)
    return found


def _fields_of(document: object) -> dict[str, object]:
    return cast("dict[str, object]", document) if isinstance(document, dict) else {}


def _is_equal(found: object, value: FilterScalar) -> bool:
    """Compare values of one type only: to Python, True is 1."""
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, str) or isinstance(value, str):
        return isinstance(found, str) and found == value
    return isinstance(found, int | float) and found == value


def _occurs(content: bytes, selector: Selector) -> bool:
    match selector.kind:
        case SelectorKind.WEBSITE:
            return True
        case SelectorKind.PROPERTY:
            key, value = (msgspec.json.encode(part) for part in (selector.key, selector.value))
            return key in content and value in content
        case _:
            needle = str(selector.value).encode()
            return len(needle) >= _MIN_SEARCHED_BYTES and needle in content
