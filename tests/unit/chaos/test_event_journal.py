"""The journal of the crash test reports each kind of broken guarantee, and nothing else."""

import pytest

from chaos.event_journal import Bucket, EventJournal, Fate, Rows, Violations

BUCKET = Bucket("events", "/1")


def journal(**fates: Fate) -> EventJournal:
    kept = EventJournal()
    for event_id, fate in fates.items():
        kept.record(BUCKET, [event_id], fate)
    return kept


ALL = journal(a=Fate.ACKNOWLEDGED, b=Fate.ACKNOWLEDGED, c=Fate.UNANSWERED, d=Fate.REFUSED)


@pytest.mark.parametrize(
    ("stored", "violations"),
    [
        ({"a": 1, "b": 1}, Violations()),
        ({"a": 1, "b": 1, "c": 1}, Violations()),
        ({"a": 1}, Violations(lost=("b",))),
        ({}, Violations(lost=("a", "b"))),
        ({"a": 2, "b": 1}, Violations(doubled=("a",))),
        ({"a": 1, "b": 1, "c": 2}, Violations(doubled=("c",))),
        ({"a": 1, "b": 1, "d": 1}, Violations(refused_but_stored=("d",))),
        ({"a": 1, "b": 1, "e": 1}, Violations(never_sent=("e",))),
        ({"a": 3, "d": 1}, Violations(lost=("b",), doubled=("a",), refused_but_stored=("d",))),
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
def test_every_violation_is_found(stored: dict[str, int], violations: Violations) -> None:
    assert ALL.find_violations(BUCKET, stored) == violations
    assert bool(violations) == any(violations)


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
def test_implausible_numbers_are_reported(rows: Rows, is_plausible: bool) -> None:
    assert ALL.is_plausible(BUCKET, rows) is is_plausible


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
def test_the_best_response_to_a_repeated_event_counts(
    first: Fate, second: Fate, kept: Fate
) -> None:
    repeated = journal(a=first)
    repeated.record(BUCKET, ["a"], second)
    assert repeated.totals() == {kept: 1}


def test_a_bucket_without_sent_events_must_be_empty() -> None:
    strange = Bucket("events", "/999")
    assert not ALL.is_plausible(strange, Rows(1, 1))
    assert ALL.find_violations(strange, {"x": 1}) == Violations(never_sent=("x",))
    assert ALL.buckets("events") == [BUCKET]
    assert ALL.buckets("errors") == []


def test_erased_events_may_be_gone_from_the_begin_and_must_be_from_the_end() -> None:
    kept = journal(a=Fate.ACKNOWLEDGED, b=Fate.ACKNOWLEDGED, c=Fate.UNANSWERED)
    kept.begin_erasing({"b"})
    assert kept.find_violations(BUCKET, {"a": 1, "b": 1}) == Violations()
    assert kept.find_violations(BUCKET, {"a": 1}) == Violations()
    assert kept.is_plausible(BUCKET, Rows(3, 3))
    kept.finish_erasing({"b"})
    kept.record(BUCKET, ["b"], Fate.ACKNOWLEDGED)
    assert kept.find_violations(BUCKET, {"a": 1}) == Violations()
    assert kept.find_violations(BUCKET, {"a": 1, "b": 1}) == Violations(erased_but_stored=("b",))
    assert not kept.is_plausible(BUCKET, Rows(3, 3))
    assert kept.find_violations(BUCKET, {}) == Violations(lost=("a",))
    assert (kept.acknowledged(), kept.acknowledged("errors")) == ({"a"}, set())
    assert kept.ids("events") == {"a", "b", "c"}
