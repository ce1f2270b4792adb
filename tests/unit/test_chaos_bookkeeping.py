"""The crash test's books must notice each kind of broken promise, and no other thing."""

import pytest

from chaos.bookkeeping import Books, Fate, Page, Rows, Wrong

PAGE = Page("events", "/1")


def books(**fates: Fate) -> Books:
    kept = Books()
    for one, fate in fates.items():
        kept.enter(PAGE, [one], fate)
    return kept


ALL = books(a=Fate.ACKNOWLEDGED, b=Fate.ACKNOWLEDGED, c=Fate.UNANSWERED, d=Fate.REFUSED)


@pytest.mark.parametrize(
    ("stored", "wrong"),
    [
        ({"a": 1, "b": 1}, Wrong()),
        ({"a": 1, "b": 1, "c": 1}, Wrong()),
        ({"a": 1}, Wrong(lost=("b",))),
        ({}, Wrong(lost=("a", "b"))),
        ({"a": 2, "b": 1}, Wrong(doubled=("a",))),
        ({"a": 1, "b": 1, "c": 2}, Wrong(doubled=("c",))),
        ({"a": 1, "b": 1, "d": 1}, Wrong(refused_but_stored=("d",))),
        ({"a": 1, "b": 1, "e": 1}, Wrong(never_sent=("e",))),
        ({"a": 3, "d": 1}, Wrong(lost=("b",), doubled=("a",), refused_but_stored=("d",))),
    ],
    ids=[
        "unanswered and gone",
        "unanswered and stored",
        "lost",
        "all lost",
        "doubled",
        "unanswered and doubled",
        "refused but stored",
        "never sent",
        "several",
    ],
)
def test_every_broken_promise_is_found(stored: dict[str, int], wrong: Wrong) -> None:
    assert ALL.compare(PAGE, stored) == wrong
    assert bool(wrong) == any(wrong)


@pytest.mark.parametrize(
    ("rows", "is_plausible"),
    [
        (Rows(2, 2), True),
        (Rows(3, 3), True),
        (Rows(1, 1), False),
        (Rows(3, 2), False),
        (Rows(4, 4), False),
    ],
    ids=["acknowledged alone", "with the unanswered", "too few", "one twice", "too many"],
)
def test_numbers_that_cannot_be_right_are_noticed(rows: Rows, is_plausible: bool) -> None:
    assert ALL.is_plausible(PAGE, rows) is is_plausible


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (Fate.UNANSWERED, Fate.ACKNOWLEDGED, Fate.ACKNOWLEDGED),
        (Fate.REFUSED, Fate.ACKNOWLEDGED, Fate.ACKNOWLEDGED),
        (Fate.ACKNOWLEDGED, Fate.REFUSED, Fate.ACKNOWLEDGED),
        (Fate.ACKNOWLEDGED, Fate.UNANSWERED, Fate.ACKNOWLEDGED),
        (Fate.REFUSED, Fate.UNANSWERED, Fate.UNANSWERED),
    ],
)
def test_the_best_answer_to_a_repeated_event_counts(first: Fate, second: Fate, kept: Fate) -> None:
    repeated = books(a=first)
    repeated.enter(PAGE, ["a"], second)
    assert repeated.totals() == {kept: 1}


def test_a_page_that_nobody_sent_to_must_be_empty() -> None:
    strange = Page("events", "/999")
    assert not ALL.is_plausible(strange, Rows(1, 1))
    assert ALL.compare(strange, {"x": 1}) == Wrong(never_sent=("x",))
    assert ALL.pages("events") == [PAGE]
    assert ALL.pages("errors") == []
