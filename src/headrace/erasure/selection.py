"""Checks what a caller wants to erase. Pure; raises `InvalidSelection` with the reason."""

import contextlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec

from headrace.model.catalog import PROPERTY_PREFIX, QUERY_LIMITS, property_key
from headrace.model.erasure import Selector, SelectorKind

_PROPERTY_FIELDS: Final = frozenset({"key", "value"})
_TEXT_KINDS: Final = frozenset(
    {
        SelectorKind.ANONYMOUS_ID,
        SelectorKind.SESSION_ID,
        SelectorKind.PROFILE_ID,
        SelectorKind.EVENT_ID,
    }
)
SELECTOR_FIELDS: Final[Mapping[str, SelectorKind]] = {
    kind.value: kind for kind in SelectorKind if kind is not SelectorKind.WEBSITE
}
"""The kinds of selectors by their names in a body; the website itself is selected by no body."""


WITH_VISITORS: Final = "withVisitors"
"""The field of a body that selects the rows of the visitors of a profile, too."""


class Selection(NamedTuple):
    """What a body selects. With `with_visitors` also the rows of the profile's anonymous ids."""

    selector: Selector
    with_visitors: bool


class InvalidSelection(Exception):
    """The selection breaks a rule; the message says which."""


def parse_selection(fields: Mapping[str, Any]) -> Selection:
    """Return what a body selects, which must have exactly one selector."""
    selector = parse_selector(fields)
    with_visitors = fields.get(WITH_VISITORS, False)
    if not isinstance(with_visitors, bool):
        raise InvalidSelection(f"{WITH_VISITORS} must be a boolean")
    if with_visitors and selector.kind is not SelectorKind.PROFILE_ID:
        raise InvalidSelection(f"{WITH_VISITORS} needs {SelectorKind.PROFILE_ID.value}")
    return Selection(selector, with_visitors)


def parse_selector(fields: Mapping[str, Any]) -> Selector:
    """Return the selector of a body, which must have exactly one."""
    given = {name: value for name, value in fields.items() if name in SELECTOR_FIELDS}
    if len(given) != 1:
        raise InvalidSelection(f"exactly one of {', '.join(SELECTOR_FIELDS)} is required")
    ((name, value),) = given.items()
    kind = SELECTOR_FIELDS[name]
    if kind in _TEXT_KINDS:
        if not isinstance(value, str) or not value:
            raise InvalidSelection(f"{name} must be a text that is not empty")
        return Selector(kind, value)
    return _property_selector(value)


def property_selectors(text: str) -> tuple[Selector, ...]:
    """Return the selectors of KEY=VALUE: the text, and the number or boolean that it may be."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidSelection(f"{text!r} is not KEY=VALUE")
    _check_key(key)
    selectors = [Selector(SelectorKind.PROPERTY, value, key)]
    with contextlib.suppress(msgspec.MsgspecError):
        # By these types: without them the decoder would follow a nested value, however deep.
        scalar = msgspec.json.decode(value, type=bool | int | float)
        selectors.append(Selector(SelectorKind.PROPERTY, scalar, key))
    return tuple(selectors)


def _property_selector(given: Any) -> Selector:  # noqa: ANN401 - any JSON value
    # JSON has no other keys
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if fields.keys() != _PROPERTY_FIELDS:
        raise InvalidSelection("property must be an object with key and value")
    key, value = fields["key"], fields["value"]
    if not isinstance(key, str):
        raise InvalidSelection("the key of property must be a text")
    _check_key(key)
    if not isinstance(value, str | bool | int | float):
        raise InvalidSelection("the value of property must be a text, a number or a boolean")
    return Selector(SelectorKind.PROPERTY, value, key)


def _check_key(key: str) -> None:
    # No column has another key: the receipt would say that no row has the property.
    if property_key(f"{PROPERTY_PREFIX}{key}") is None:
        longest = QUERY_LIMITS["maxPropertyKeyLength"]
        raise InvalidSelection(f"the key of property must have 1 to {longest} characters")
