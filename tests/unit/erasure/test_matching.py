"""Which items and bytes a selector selects."""

from typing import Any

import pytest

from headrace.erasure.matching import bytes_match, item_matches, property_matches
from headrace.model.erasure import WHOLE_WEBSITE, Selector, SelectorKind

ANN = Selector(SelectorKind.ANONYMOUS_ID, "ann-1")


def item(**fields: Any) -> dict[str, Any]:
    return {"website_id": "web_1", "anonymous_id": "", "session_id": "", **fields}


@pytest.mark.parametrize(
    ("selector", "fields"),
    [
        pytest.param(ANN, {"anonymous_id": "ann-1"}, id="anonymous id"),
        pytest.param(Selector(SelectorKind.SESSION_ID, "s"), {"session_id": "s"}, id="session id"),
        pytest.param(Selector(SelectorKind.PROFILE_ID, "p"), {"profile_id": "p"}, id="profile id"),
        pytest.param(Selector(SelectorKind.EVENT_ID, "e"), {"event_id": "e"}, id="event id"),
        pytest.param(
            Selector(SelectorKind.PROPERTY, "a@b", "email"),
            {"properties": b'{"email":"a@b"}'},
            id="property",
        ),
        pytest.param(WHOLE_WEBSITE, {}, id="website"),
    ],
)
def test_a_selector_selects_its_value_on_its_website_alone(
    selector: Selector, fields: dict[str, Any]
) -> None:
    assert item_matches(item(**fields), "web_1", [selector])
    assert not item_matches(item(**fields), "web_2", [selector])


def test_another_value_or_another_field_does_not_match() -> None:
    assert not item_matches(item(anonymous_id="ann-10", session_id="ann-1"), "web_1", [ANN])


def test_one_of_several_selectors_is_enough() -> None:
    selectors = [Selector(SelectorKind.PROFILE_ID, "p"), ANN]
    assert item_matches(item(anonymous_id="ann-1"), "web_1", selectors)


@pytest.mark.parametrize(
    ("properties", "key", "value", "expected"),
    [
        (b'{"n":1}', "n", 1, True),
        (b'{"n":1}', "n", "1", False),
        (b'{"n":"1"}', "n", 1, False),
        (b'{"n":1}', "n", True, False),
        (b'{"n":true}', "n", 1, False),
        (b'{"n":true}', "n", True, True),
        (b'{"n":5.0}', "n", 5, True),
        (b'{"n":null}', "n", "null", False),
        (b'{"a":{"b":"x"}}', "a.b", "x", True),
        (b'{"a.b":"y","a":{"b":"x"}}', "a.b", "x", False),
        (b'{"a":["x"]}', "a", "x", False),
        (b'{"a":"x"}', "a.b", "x", False),
        (b'{"\\u00e9":"\\u00e8"}', "é", "è", True),
        (b"", "a", "x", False),
        (b"no json", "a", "x", False),
    ],
)
def test_a_property_matches_its_value_with_its_type(
    properties: bytes, key: str, value: str | float, expected: bool
) -> None:
    assert property_matches(properties, key, value) is expected


def test_bytes_match_with_website_and_identifier_and_not_for_short_texts() -> None:
    assert bytes_match(b"\x00web_1\xffann-1\x00", "web_1", [ANN])
    assert not bytes_match(b"\x00web_2\xffann-1\x00", "web_1", [ANN])
    assert not bytes_match(b"web_1 ann", "web_1", [Selector(SelectorKind.ANONYMOUS_ID, "ann")])
    email = Selector(SelectorKind.PROPERTY, "a@b", "email")
    assert bytes_match(b'web_1 {"email":"a@b"}', "web_1", [email])
    assert not bytes_match(b'web_1 {"mail":"a@b"}', "web_1", [email])
