"""What the command line selects by KEY=VALUE."""

import pytest

from headrace.erasure.selection import property_selectors
from headrace.model.erasure import Selector, SelectorKind
from headrace.model.plan import FilterScalar


@pytest.mark.parametrize(
    ("text", "scalars"),
    [
        pytest.param("5", [5], id="number"),
        pytest.param("1.0", [1.0], id="number with a fraction"),
        pytest.param("1e5", [100_000.0], id="number with an exponent"),
        pytest.param("-" + "9" * 400, [-int("9" * 400)], id="number past doubles"),
        pytest.param("true", [True], id="boolean"),
        pytest.param("null", [], id="null"),
        pytest.param('"5"', [], id="text in JSON"),
        pytest.param("", [], id="empty text"),
        pytest.param("a=b", [], id="text with an equals sign"),
        pytest.param("9" * 5_000, [], id="more digits than numbers have"),
        pytest.param("[" * 5_000 + "]" * 5_000, [], id="deeply nested array"),
        pytest.param("é", [], id="no JSON"),
    ],
)
def test_a_value_is_a_text_and_the_number_or_boolean_of_its_json(
    text: str, scalars: list[FilterScalar]
) -> None:
    selectors = property_selectors(f"plan={text}")
    assert selectors == tuple(
        Selector(SelectorKind.PROPERTY, value, "plan") for value in (text, *scalars)
    )
    assert [type(selector.value) for selector in selectors[1:]] == list(map(type, scalars))
