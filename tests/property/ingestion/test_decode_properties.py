"""For any input, decoding returns items or raises only Headrace's own errors."""

import json
from collections.abc import Sequence
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from headrace.base.errors import FieldError, InvalidBody, PayloadTooLarge
from headrace.ingest.receive.decoding.body_scan import contains_nul, count_items, exceeds_depth
from headrace.ingest.receive.decoding.decode import PATH_SPECS, IngestPath, WireItem, decode_items
from headrace.model.wire import CustomEvent

Json: TypeAlias = "bool | float | str | list[Json] | dict[str, Json] | None"
MAX_ITEMS = 5

endpoints = st.sampled_from(IngestPath)
texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['"', "\\", '\\"[', "[[{", "}]", "\0", "\\u0000", "\U0001f600", "2024-05-01", "LCP"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=15
)
FIELDS = sorted(
    {"name", "properties", "timestamp", "path", "metricName", "metricValue", "message", "ip"}
    | {"anonymousId", "websiteId", "lineno", "title", "level", "unknown"}
)
VALID: dict[str, Json] = {
    "name": "a",
    "timestamp": 1714564800000,
    "path": "/",
    "metricName": "LCP",
    "metricValue": 1.5,
    "message": "boom",
    "properties": {"k": ["v", {"w": 1}], "q": 'a "quoted" \\ text'},
    "anonymousId": "anon_\u00e9",
}
items = st.dictionaries(st.sampled_from(FIELDS), values).map(lambda changes: VALID | changes)
documents = items | st.lists(items | values, max_size=MAX_ITEMS + 2) | values


def write(document: Json, ascii_only: bool) -> bytes:
    return json.dumps(document, ensure_ascii=ascii_only).encode()


bodies = st.builds(write, documents, st.booleans())
AWKWARD = [
    *(b'"', b"\\", b"[", b"]", b"{", b"}", b",", b":", b"\\u0000", b"\\ud800", b"\\udc00"),
    *(b"\xff", b"\x00", b"\xef\xbb\xbf", b"1e999", b"9" * 5000, b"[" * 70, b"null", b"-", b"\n"),
]


@st.composite
def mutated_bodies(draw: st.DrawFn) -> bytes:
    body = draw(bodies)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(len(body), start + 4)))
        body = body[:start] + draw(st.sampled_from(AWKWARD) | st.binary(max_size=3)) + body[end:]
    return body


def check_outcome(endpoint: IngestPath, body: bytes) -> None:
    field_errors: tuple[FieldError, ...] = ()
    decoded: Sequence[WireItem] = ()
    try:
        decoded = decode_items(endpoint, body, max_items=MAX_ITEMS)
    except InvalidBody as refusal:
        field_errors = refusal.field_errors
    except PayloadTooLarge:
        assert body.count(b",") >= MAX_ITEMS
    spec = PATH_SPECS[endpoint]
    made = spec.item if spec.event_name is None else CustomEvent
    assert {type(item) for item in decoded} <= {made}
    assert len(decoded) <= MAX_ITEMS
    assert [field_error.index for field_error in field_errors] == sorted(
        field_error.index for field_error in field_errors[:50]
    )


@given(endpoints, st.binary())
def test_any_bytes_give_items_or_our_error(endpoint: IngestPath, body: bytes) -> None:
    check_outcome(endpoint, body)


@given(endpoints, bodies)
def test_any_json_gives_items_or_our_error(endpoint: IngestPath, body: bytes) -> None:
    check_outcome(endpoint, body)


@given(endpoints, mutated_bodies())
def test_any_damage_gives_items_or_our_error(endpoint: IngestPath, body: bytes) -> None:
    check_outcome(endpoint, body)


def parts_of(value: Json) -> list[Json]:
    """Return the values one level below, keys included."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def depth(value: Json) -> int:
    deepest = max(map(depth, parts_of(value)), default=0)
    return 1 + deepest if isinstance(value, list | dict) else 0


def has_nul(value: Json) -> bool:
    return (isinstance(value, str) and "\0" in value) or any(map(has_nul, parts_of(value)))


def wrap(value: Json, levels: int) -> Json:
    for _ in range(levels):
        value = [value]
    return value


deep_values = st.recursive(
    scalars,
    lambda inner: st.builds(
        wrap,
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        st.integers(0, 12),
    ),
    max_leaves=10,
)


@given(deep_values, st.booleans(), st.integers(0, 30))
def test_nesting_depth_is_exact(value: Json, ascii_only: bool, levels: int) -> None:
    body = write(value, ascii_only)

    assert exceeds_depth(body, levels) == (depth(value) > levels)


@given(values, st.booleans())
def test_nul_detection_is_exact(value: Json, ascii_only: bool) -> None:
    body = write(value, ascii_only)

    assert contains_nul(body) == has_nul(value)


@given(st.lists(values), st.integers(0, 8), st.sampled_from([",", " , ", ",\n"]))
def test_items_are_counted_up_to_the_limit(array: list[Json], at_most: int, comma: str) -> None:
    body = json.dumps(array, separators=(comma, ":")).encode()

    assert count_items(body, at_most=at_most) == min(len(array), at_most)


def breaks_no_rule(document: Json) -> bool:
    """Return whether custom events with only a name and unknown keys are valid.

    An implementation of its own, independent of the decoder.
    """
    listed = parts_of(document) if isinstance(document, list) else [document]
    names = [item.get("name") if isinstance(item, dict) else None for item in listed]
    return len(listed) <= MAX_ITEMS and all(
        isinstance(name, str) and 1 <= len(name) <= 256 for name in names
    )


plain = st.none() | st.booleans() | st.integers() | st.text("a\u00e9\U0001f600", max_size=300)
plain_items = st.dictionaries(st.sampled_from(["name", "x"]), plain)


@given(plain_items | st.lists(plain_items | plain, max_size=MAX_ITEMS + 1), st.booleans())
def test_exactly_valid_bodies_are_accepted(document: Json, ascii_only: bool) -> None:
    body = json.dumps(document, ensure_ascii=ascii_only).encode()

    try:
        decode_items(IngestPath.TRACK, body, max_items=MAX_ITEMS)
    except (InvalidBody, PayloadTooLarge):
        taken = False
    else:
        taken = True

    assert taken == breaks_no_rule(document)
