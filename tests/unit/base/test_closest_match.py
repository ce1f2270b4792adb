"""Suggestions of the closest valid name."""

import pytest

from headrace.base.closest_match import MAX_COMPARED_LENGTH, closest_match
from headrace.model.catalog import EVENTS

COLUMNS = [column.name for column in EVENTS.columns]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("pth", "path"),
        ("pathname", "path"),
        ("PATH", "path"),
        ("sessionId", "session_id"),
        ("anonymousid", "anonymous_id"),
        ("browser", "browser_name"),
        ("event-name", "event_name"),
        ("utm_src", "utm_source"),
        ("contry", "country"),
        ("duration", None),
        ("zzzzzz", None),
        ("", None),
    ],
)
def test_close_name_is_found(name: str, suggestion: str | None) -> None:
    assert closest_match(name, COLUMNS) == suggestion


def test_name_that_is_too_long_is_compared_with_nothing() -> None:
    longest = "p" * MAX_COMPARED_LENGTH
    assert closest_match(longest, [longest]) == longest
    assert closest_match(longest + "p", [longest]) is None
