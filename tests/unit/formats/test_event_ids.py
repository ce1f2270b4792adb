"""Digests of event ids do not change between versions: ledgers contain them for seven days."""

from hashlib import blake2b

from headrace.formats.event_ids import event_keys, keyed_digests, keyless_digest, known_among
from headrace.model.log_records import Event, EventKind, Vital


def expected(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def test_digest_is_that_of_kind_website_and_event_id() -> None:
    items = [
        Event("web_a", 0, "a", event_id="1"),
        Event("web_a", 0, "b"),
        Event("web_ä", 0, "c", event_id="1"),
        Event("web_a", 0, "d", event_id="ü" * 300),
    ]
    assert keyed_digests(EventKind.EVENTS, items) == [
        expected("events\0web_a\x001"),
        b"",
        expected("events\0web_ä\x001"),
        expected("events\0web_a\0" + "ü" * 300),
    ]
    vital = Vital("web_a", 0, "LCP", 1.0, "/", event_id="1")
    assert keyed_digests(EventKind.VITALS, [vital]) == [expected("vitals\0web_a\x001")]


def test_digest_without_an_api_key_differs_in_the_last_bit() -> None:
    digest = expected("events\0web_a\x001")
    assert keyless_digest(digest) == digest[:-1] + bytes([digest[-1] ^ 1])


def test_known_digests_are_found_with_their_expiries() -> None:
    known = {b"a": 1, b"b": 2}
    assert known_among(known, [b"c", b"b"]) == {b"b": 2}
    assert known_among(known, [b"c"]) == {}


def test_keys_of_rows_are_the_first_half_of_their_digests_or_zeros() -> None:
    first, second = bytes(range(16)), bytes(range(100, 116))
    assert list(event_keys([first, second])) == [bytes(range(8)), bytes(range(100, 108))]
    assert list(event_keys([first, b"", second])) == [bytes(range(8)), bytes(8), second[:8]]
    assert list(event_keys([b"", b""])) == [bytes(8), bytes(8)]
    assert list(event_keys([])) == []
