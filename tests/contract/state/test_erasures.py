"""The erasures of a data directory as files."""

import resource
from pathlib import Path

import pytest

from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.base.errors import StoreUnavailable
from headrace.model.erasure import Selector, SelectorKind, Subject
from headrace.model.tenancy import WebsiteId
from headrace.ports.event_log import LogOffset
from headrace.ports.rows.erasure import Erasure, ErasurePlan, RowsToErase

PLAN = ErasurePlan(
    selectors=(Selector(SelectorKind.PROPERTY, 1.5, "price"),),
    tables=(RowsToErase("events", 1, (bytes(16),), 1, 2),),
    quarantined=("a.json",),
    log_ends={"worker-0": LogOffset(1, 30)},
)


def erasure(erasure_id: str, requested_ms: int) -> Erasure:
    return Erasure(
        id=erasure_id,
        website_id=WebsiteId("web_1"),
        kind=SelectorKind.PROPERTY,
        subjects=(Subject(SelectorKind.PROPERTY, "ab"),),
        by="cli ann",
        requested_ms=requested_ms,
        plan=PLAN,
    )


def test_erasures_are_listed_by_their_time_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "erasures"
    assert FileErasures(path).all() == []
    first, second = erasure("era_b", 1), erasure("era_a", 2)
    for one in (second, first):
        FileErasures(path).put(one)
    assert FileErasures(path).all() == [first, second]
    assert FileErasures(path).get("era_a") == second
    assert FileErasures(path).get("era_c") is None


def test_an_id_is_never_a_path(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    FileErasures(tmp_path / "erasures").put(erasure("era_a", 1))
    assert FileErasures(tmp_path / "erasures").get("../secret") is None


def test_the_key_is_made_once_and_kept_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "erasures"
    key = FileErasures(path).key()
    assert len(key) == 32
    assert FileErasures(path).key() == key
    assert path.stat().st_mode & 0o77 == 0
    assert (path / "key").stat().st_mode & 0o77 == 0


def test_a_full_disk_is_an_error_that_names_the_directory(tmp_path: Path) -> None:
    path = tmp_path / "erasures"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
    try:
        with pytest.raises(StoreUnavailable) as failed:
            FileErasures(path).put(erasure("era_a", 1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(failed.value) == f"cannot use the erasures {path}: file too large"
    assert list(path.iterdir()) == []


def test_a_damaged_file_is_an_error_that_names_it_and_the_cause(tmp_path: Path) -> None:
    (tmp_path / "era_a.json").write_text("{")
    with pytest.raises(StoreUnavailable) as failed:
        FileErasures(tmp_path).all()
    file = tmp_path / "era_a.json"
    assert str(failed.value) == f"the erasure {file} is damaged: Input data was truncated"
