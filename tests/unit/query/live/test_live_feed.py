"""What a live stream gets: every item in order, or how many are gone."""

import pytest

from headrace.formats.event_stream import encode_event
from headrace.ports.live import KEPT_ITEMS, LiveItem, LiveItems
from headrace.query.live.feed import Feed, Position, parse_position


def items(epoch: str, first: int, count: int) -> LiveItems:
    return LiveItems(
        epoch, first, tuple(LiveItem("event", b"%d" % (first + n)) for n in range(count))
    )


def event(epoch: str, number: int) -> bytes:
    """The event of an item; its id is the position after it."""
    return b"event: event\nid: %b-%d\ndata: %d\n\n" % (epoch.encode(), number + 1, number)


def missed(epoch: str, number: int, count: str) -> bytes:
    return f'event: missed\nid: {epoch}-{number}\ndata: {{"count":{count}}}\n\n'.encode()


def feed_of(*batches: LiveItems) -> Feed:
    feed = Feed()
    for batch in batches:
        feed.extend(batch)
    return feed


def test_a_stream_gets_what_came_after_its_position() -> None:
    feed = feed_of(items("e", 0, 2), items("e", 2, 1))
    assert feed.end == Position("e", 3)
    assert feed.since(Position("e", 1)) == event("e", 1) + event("e", 2)
    assert feed.since(Position("e", 3)) == b""


def test_items_beyond_those_that_are_kept_are_missed_by_number() -> None:
    feed = feed_of(items("e", 0, KEPT_ITEMS), items("e", KEPT_ITEMS, 7))
    shown = feed.since(Position("e", 2))
    assert shown.startswith(missed("e", 7, "5") + event("e", 7))
    assert shown.endswith(event("e", KEPT_ITEMS + 6))
    assert feed.since(Position("e", 7)).startswith(event("e", 7))


def test_a_gap_in_what_the_engine_sends_is_missed_by_number() -> None:
    feed = feed_of(items("e", 0, 2), items("e", 5, 1))
    assert feed.since(Position("e", 2)) == missed("e", 5, "3") + event("e", 5)


@pytest.mark.parametrize("position", [Position("old", 1), Position("e", 9), Position("", 0)])
def test_from_another_epoch_nobody_knows_how_many_are_missed(position: Position) -> None:
    feed = feed_of(items("old", 0, 3), items("e", 0, 1))
    assert feed.since(position) == missed("e", 0, "null") + event("e", 0)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a1-12", Position("a1", 12)),
        ("a-b-0", Position("a-b", 0)),
        ("", Position("", 0)),
        ("a1-", Position("", 0)),
        ("a1-x", Position("", 0)),
        ("a1-²", Position("", 0)),
        ("a1-" + "9" * 5_000, Position("", 0)),
    ],
)
def test_an_id_is_a_position_and_other_text_is_none(text: str, position: Position) -> None:
    assert parse_position(text) == position


def test_positions_survive_as_ids() -> None:
    assert parse_position(Position("a1", 3).as_id()) == Position("a1", 3)


def test_an_event_has_its_name_its_id_and_one_line_of_data() -> None:
    assert encode_event("k", "i", b"{}") == b"event: k\nid: i\ndata: {}\n\n"
