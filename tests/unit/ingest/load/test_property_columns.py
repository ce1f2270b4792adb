"""What promoting properties costs."""

import tracemalloc

import pytest

from headrace.ingest.load.property_columns import promote_properties

MANY_OBJECTS = b'"other":[' + b"{}," * 100_000 + b"{}]"


@pytest.mark.parametrize(
    ("title", "promoted"),
    [(b'"Home"', {"title": "Home"}), (b"{}", {}), (b"[" + MANY_OBJECTS[9:], {})],
    ids=["all of the right type", "one of the wrong type", "a large one of the wrong type"],
)
def test_no_objects_are_made_of_what_is_not_promoted(
    title: bytes, promoted: dict[str, str]
) -> None:
    properties = b'{"title":' + title + b"," + MANY_OBJECTS + b"}"

    tracemalloc.start()
    try:
        assert promote_properties(properties) == promoted
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # An object takes 64 bytes and a place in a list, many times the three bytes of its text.
    assert peak_bytes < 2 * len(properties)
