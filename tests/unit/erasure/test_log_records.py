"""Records keep their length and the indexes of their items when some are erased."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.erasure.log_records import without_erased_items
from headrace.model.erasure import WHOLE_WEBSITE, Selector, SelectorKind
from headrace.model.log_records import (
    UNKNOWN_VISITOR,
    ErrorEvent,
    ErrorRecord,
    Event,
    EventRecord,
    ItemPosition,
    LogRecord,
    PackedEventRecord,
    Visitor,
    Vital,
    VitalRecord,
    decode_record,
    encode_record,
)

NOW = 1_700_000_000_000
ANN = Selector(SelectorKind.ANONYMOUS_ID, "ann-1")
GERMAN = Visitor(country="DE", city="Nauen")


def event(anonymous_id: str, path: str = "/") -> Event:
    return Event("web_1", NOW, "bought", anonymous_id, path=path)


def indexes(record: LogRecord) -> tuple[int, ...]:
    return () if record.erased is None else record.erased.indexes


def erased(record: LogRecord, selector: Selector = ANN) -> LogRecord:
    payload = encode_record(record)
    changed = without_erased_items(payload, "web_1", [selector])
    assert changed is not None
    assert len(changed) == len(payload)
    return decode_record(changed)


def test_other_items_keep_their_index_and_their_content() -> None:
    items = [event("bob"), event("ann-1"), event("eve")]
    changed = erased(EventRecord(NOW, GERMAN, items, b"digest", True))
    assert indexes(changed) == (1,)
    left = msgspec.structs.replace(changed, erased=None)
    assert left == EventRecord(NOW, GERMAN, [items[0], Event("", 0, ""), items[2]], b"digest", True)


def test_a_record_without_other_items_loses_the_visitor_too() -> None:
    assert erased(EventRecord(NOW, GERMAN, [event("ann-1")])).visitor == UNKNOWN_VISITOR


@pytest.mark.parametrize(
    "record",
    [
        EventRecord(NOW, GERMAN, [event("ann-1")]),
        VitalRecord(NOW, GERMAN, [Vital("web_1", NOW, "LCP", 1.5, "/", anonymous_id="ann-1")]),
        ErrorRecord(NOW, GERMAN, [ErrorEvent("web_1", NOW, "m", "/", anonymous_id="ann-1")]),
    ],
)
def test_no_byte_of_an_erased_item_remains(record: LogRecord) -> None:
    changed = without_erased_items(encode_record(record), "web_1", [ANN])
    assert changed is not None
    for text in (b"ann-1", b"web_1", b"bought", b"Nauen", b"LCP"):
        assert text not in changed


def test_a_record_as_workers_write_it_is_overwritten_too() -> None:
    item = ("web_1", NOW, "bought", "ann-1", "", "", "", "", "", "", b"")
    payload = encode_record(PackedEventRecord(NOW, GERMAN, [item]))
    changed = without_erased_items(payload, "web_1", [ANN])
    assert changed is not None
    assert indexes(decode_record(changed)) == (0,)


def test_a_record_of_an_older_version_is_overwritten_too() -> None:
    fields = ["events", NOW, GERMAN, [event("ann-1")]]  # no digest, no has_api_key
    payload = msgspec.msgpack.encode(fields)
    assert decode_record(payload) == EventRecord(NOW, GERMAN, [event("ann-1")])
    changed = without_erased_items(payload, "web_1", [ANN])
    assert changed is not None
    assert len(changed) == len(payload)
    assert indexes(decode_record(changed)) == (0,)


def test_an_erased_item_from_the_quarantine_still_says_where_it_was_rejected() -> None:
    position = ItemPosition("worker-0", 1, 30, 2)
    record = EventRecord(NOW, GERMAN, [event("ann-1")], is_requeued=True, requeued_from=position)
    changed = erased(record)
    assert (indexes(changed), changed.is_requeued) == ((0,), True)
    assert changed.requeued_from == position


def test_records_without_a_selected_item_are_not_changed() -> None:
    payload = encode_record(EventRecord(NOW, GERMAN, [event("bob")]))
    assert without_erased_items(payload, "web_1", [ANN]) is None
    assert without_erased_items(payload, "web_2", [WHOLE_WEBSITE]) is None


def test_bytes_that_are_no_record_are_replaced_if_they_match() -> None:
    assert without_erased_items(b"\xc1web_1 ann-1", "web_1", [ANN]) == bytes(12)
    assert without_erased_items(b"\xc1web_1 bob", "web_1", [ANN]) is None


@given(
    names=st.lists(st.sampled_from(["ann-1", "bob", "eve"]), min_size=1, max_size=40),
    path=st.text(max_size=300),
    rounds=st.lists(st.sampled_from(["ann-1", "bob", "eve"]), min_size=1, max_size=3, unique=True),
)
def test_any_record_survives_erasures_one_after_another(
    names: list[str], path: str, rounds: list[str]
) -> None:
    items = [event(name, path=path) for name in names]
    payload = encode_record(EventRecord(NOW, GERMAN, items))
    for value in rounds:
        selector = Selector(SelectorKind.ANONYMOUS_ID, value)
        payload = without_erased_items(payload, "web_1", [selector]) or payload
    record = decode_record(payload)
    assert isinstance(record, EventRecord)
    gone = tuple(index for index, name in enumerate(names) if name in rounds)
    assert indexes(record) == gone
    assert [item for index, item in enumerate(record.items) if index not in gone] == [
        item for item in items if item.anonymous_id not in rounds
    ]
