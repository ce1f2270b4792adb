"""Items of an import that were erased before, and those that only look like them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.erasure.imported_items import ErasedImportItems
from headrace.erasure.subjects import subjects_of
from headrace.model.erasure import Selector, SelectorKind
from headrace.model.imports import ImportItem
from headrace.model.log_records import Event, Vital
from headrace.model.tenancy import WebsiteId
from headrace.ports.rows.erasure import Erasure

NOON = 1_768_478_400_000
WEBSITE = WebsiteId("web_1")


def row_id(number: int, received_ms: int = NOON) -> bytes:
    return received_ms.to_bytes(6, "big") + number.to_bytes(10, "big")


def item(number: int, received_ms: int = NOON, **fields: Any) -> ImportItem:
    values = Event("web_1", NOON, "visit", **fields)
    full = tuple(getattr(values, name) for name in Event.__struct_fields__)
    return ImportItem(NOON, row_id(number, received_ms), received_ms, full)


def erase(erasures: FileErasures, *selectors: Selector, website: str = WEBSITE) -> None:
    subjects = subjects_of(erasures.key(), website, selectors)
    erasures.put(
        Erasure(
            id=f"era_{len(erasures.ids())}",
            website_id=WebsiteId(website),
            kind=selectors[0].kind,
            subjects=subjects,
            by="cli ann",
            requested_ms=NOON,
        )
    )


def numbers(items: Sequence[ImportItem]) -> list[int]:
    return [int.from_bytes(one.row_id[6:], "big") for one in items]


def test_items_of_every_kind_of_selector_are_erased(tmp_path: Path) -> None:
    erasures = FileErasures(tmp_path)
    erase(
        erasures,
        Selector(SelectorKind.ANONYMOUS_ID, "ann"),
        Selector(SelectorKind.SESSION_ID, "s1"),
        Selector(SelectorKind.PROFILE_ID, "p1"),
        Selector(SelectorKind.EVENT_ID, row_id(5).hex()),
        Selector(SelectorKind.PROPERTY, 1, "deep.n"),
    )
    items = [
        item(1, anonymous_id="ann"),
        item(2, session_id="s1"),
        item(3, profile_id="p1"),
        item(4, properties=b'{"deep":{"n":1}}'),
        item(5),
        item(6, anonymous_id="s1", session_id="ann"),
        item(7, properties=b'{"deep":{"n":"1"}}'),
        ImportItem(NOON, row_id(8), NOON, Vital("web_1", NOON, "LCP", 1, "/", anonymous_id="ann")),
        ImportItem(NOON, row_id(9), NOON, Vital("web_1", NOON, "LCP", 1, "/")),
    ]
    left = ErasedImportItems(erasures, WEBSITE).without_erased(items)
    assert numbers(left) == [6, 7, 9]


def test_items_whose_property_is_hidden_or_has_a_dotted_name_are_not_erased(tmp_path: Path) -> None:
    erasures = FileErasures(tmp_path)
    erase(
        erasures,
        Selector(SelectorKind.PROPERTY, "x", "a.b"),
        Selector(SelectorKind.PROPERTY, "x", "c.d.e"),
    )
    items = [
        item(1, properties=b'{"a":{"b":"x"}}'),
        item(2, properties=b'{"a.b":"x"}'),
        item(3, properties=b'{"a.b":"y","a":{"b":"x"}}'),
        item(4, properties=b'{"c":{"d.e":"x"}}'),
        item(5, properties=b'{"c.d":{"e":"x"}}'),
    ]
    assert numbers(ErasedImportItems(erasures, WEBSITE).without_erased(items)) == [3, 4, 5]


def test_rows_that_were_received_after_the_erasure_stay(tmp_path: Path) -> None:
    erasures = FileErasures(tmp_path)
    erase(erasures, Selector(SelectorKind.ANONYMOUS_ID, "ann"))
    items = [item(1, anonymous_id="ann"), item(2, NOON + 1, anonymous_id="ann")]
    assert numbers(ErasedImportItems(erasures, WEBSITE).without_erased(items)) == [2]


def test_erasures_of_other_websites_do_not_count_and_new_ones_are_read(tmp_path: Path) -> None:
    erasures = FileErasures(tmp_path)
    checked = ErasedImportItems(erasures, WEBSITE)
    items = [item(1, anonymous_id="ann"), item(2, anonymous_id="bob")]
    erase(erasures, Selector(SelectorKind.ANONYMOUS_ID, "ann"), website="web_2")
    assert numbers(checked.without_erased(items)) == [1, 2]
    erase(erasures, Selector(SelectorKind.ANONYMOUS_ID, "ann"))
    assert numbers(checked.without_erased(items)) == [2]
