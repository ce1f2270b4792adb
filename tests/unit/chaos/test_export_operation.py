"""The crash test finds exports that lack, double or invent events, and accepts right ones."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.event_journal import Bucket, EventJournal, Fate
from chaos.fault import GuaranteeViolated
from chaos.operations.export import EventExport
from chaos.operations.operation import OperationContext

BUCKET = Bucket("events", "/1")


def journal() -> EventJournal:
    kept = EventJournal()
    for event_id, fate in (("a", Fate.ACKNOWLEDGED), ("b", Fate.UNANSWERED), ("c", Fate.REFUSED)):
        kept.record(BUCKET, [event_id], fate)
    kept.record(Bucket("errors", "/1"), ["of another table"], Fate.ACKNOWLEDGED)
    return kept


def export(kept: EventJournal, *lines: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run an export whose attempts return these events, separated by blanks; None is cut off."""
    attempts = iter(lines)

    def read(_export: EventExport) -> bytes | None:
        ids = next(attempts)
        if ids is None:
            return None
        return b"".join(json.dumps({"anonymous_id": one}).encode() + b"\n" for one in ids.split())

    monkeypatch.setattr(EventExport, "_read", read)
    monkeypatch.setattr("chaos.operations.export.RESPONSE_TIMEOUT_S", 0.0)
    service: Any = SimpleNamespace(recovery_timeout_s=30.0)
    traffic: Any = SimpleNamespace(journal=kept)
    context = OperationContext(service, cast("Any", None), traffic, cast("Any", None), 2)
    operation = EventExport(context)
    assert operation.begin()
    operation.finish()


@pytest.mark.parametrize("lines", [("a",), ("a b",), (None, None, "b a")])
def test_a_complete_export_has_what_was_acknowledged_and_nothing_unknown(
    lines: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    export(journal(), *lines, monkeypatch=monkeypatch)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("b", "an export has 1 events missing: a"),
        ("a b b", "an export has 1 events doubled: b"),
        ("a c", "an export has 1 events never sent: c"),
        ("a unknown", "an export has 1 events never sent: unknown"),
    ],
)
def test_wrong_exports_are_found(line: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GuaranteeViolated, match=f"^{problem}$"):
        export(journal(), line, monkeypatch=monkeypatch)


def test_events_that_were_erased_meanwhile_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = journal()
    kept.begin_erasing({"a"})
    export(kept, "b", monkeypatch=monkeypatch)
