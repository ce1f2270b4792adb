import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.base.errors import PayloadTooLarge
from headrace.base.json_size import JsonLimits, check_json_size

NO_LIMIT = 1_000_000_000


def is_too_large(body: bytes, *, max_objects: int = NO_LIMIT, max_keys: int = NO_LIMIT) -> bool:
    try:
        check_json_size(body, JsonLimits(max_objects, max_keys))
    except PayloadTooLarge:
        return True
    return False


def count_objects(value: object) -> int:
    match value:
        case dict():
            return 1 + sum(map(count_objects, value.values()))  # pyright: ignore[reportUnknownArgumentType]
        case list():
            return 1 + sum(map(count_objects, value))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return 0


def count_keys(value: object) -> int:
    match value:
        case dict():
            return len(value) + sum(map(count_keys, value.values()))  # pyright: ignore[reportUnknownArgumentType]
        case list():
            return sum(map(count_keys, value))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return 0


texts = st.text(alphabet='{}[]":,\\a\n', max_size=12)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=40,
)


@given(value=values)
def test_every_object_array_and_key_outside_of_strings_counts(value: object) -> None:
    body = json.dumps(value).encode()
    objects, keys = count_objects(value), count_keys(value)

    assert not is_too_large(body, max_objects=objects, max_keys=keys)
    assert objects == 0 or is_too_large(body, max_objects=objects - 1)
    assert keys == 0 or is_too_large(body, max_keys=keys - 1)


@pytest.mark.parametrize("unit", [b"[],", b"{},"], ids=["arrays", "objects"])
def test_the_default_limit_is_100_000_objects_and_arrays(unit: bytes) -> None:
    assert not is_too_large(b"[" + unit * 99_998 + b"{}]", max_objects=100_000)
    assert is_too_large(b"[" + unit * 99_999 + b"{}]", max_objects=100_000)


def test_the_default_limit_is_1_000_000_keys() -> None:
    assert not is_too_large(b"{" + b'"a":0,' * 999_999 + b'"a":0}', max_keys=1_000_000)
    assert is_too_large(b"{" + b'"a":0,' * 1_000_000 + b'"a":0}', max_keys=1_000_000)


def test_a_string_of_json_counts_as_one_string() -> None:
    text = json.dumps([{"a": "b"}] * 200_000)

    assert not is_too_large(json.dumps({"a": text}).encode(), max_objects=1, max_keys=1)


def test_a_string_across_windows_stays_a_string() -> None:
    strings = json.dumps(["[" * 100_000] * 10).encode()

    assert not is_too_large(strings, max_objects=1)
    assert is_too_large(b"[" + strings + b",{}]", max_objects=2)
