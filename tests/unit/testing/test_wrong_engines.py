"""The wrong query engines of `tests/mutation` can be made of this code."""

from collections import Counter
from pathlib import Path

import pytest

from tests.mutation.engines import WRONG_ENGINES
from tests.mutation.wrong_engine import WrongEngine

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize("engine", WRONG_ENGINES, ids=lambda engine: engine.mistake)
def test_the_text_of_a_mistake_occurs_once(engine: WrongEngine) -> None:
    assert (PROJECT / engine.file).read_text().count(engine.old) == 1
    assert engine.new != engine.old


def test_no_mistake_is_made_twice() -> None:
    made = Counter((engine.file, engine.old, engine.new) for engine in WRONG_ENGINES)
    assert [change for change, times in made.items() if times > 1] == []


def test_the_page_of_guarantees_has_their_number() -> None:
    said = f"has {len(WRONG_ENGINES)} wrong query engines"
    assert said in (PROJECT / "docs" / "guarantees.md").read_text()
