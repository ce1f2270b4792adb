"""Erasures that leave their data directory, for a copy of it that is restored."""

import resource
from pathlib import Path

import msgspec
import pytest

from headrace.adapters.erasures.erasure_set import (
    ErasureSet,
    merge_erasures,
    read_erasure_set,
    write_erasure_set,
)
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.base.errors import OperatorError
from headrace.ports.rows.erasure import Erasure
from tests.contract.state.test_erasures import erasure


def filled(path: Path, *erasures: Erasure) -> FileErasures:
    files = FileErasures(path)
    files.key()
    for one in erasures:
        files.put(one)
    return files


def done(one: Erasure) -> Erasure:
    return msgspec.structs.replace(one, plan=None, done_ms=9)


def test_erasures_are_read_from_folder_data_directory_and_file(tmp_path: Path) -> None:
    files = filled(tmp_path / "erasures", erasure("era_a", 1))
    known = read_erasure_set(tmp_path / "erasures")
    assert known == ErasureSet(files.key().hex(), (erasure("era_a", 1),))
    assert read_erasure_set(tmp_path) == known
    write_erasure_set(known, tmp_path / "known.json")
    (read,) = read_erasure_set(tmp_path / "known.json").erasures
    assert read == msgspec.structs.replace(erasure("era_a", 1), plan=None)


def test_file_that_cannot_be_written_whole_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))  # as a disk that is full
    try:
        with pytest.raises(OperatorError) as failed:
            write_erasure_set(ErasureSet("ab" * 32, (erasure("era_a", 1),)), file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(failed.value) == f"cannot write {file}: file too large"
    assert list(tmp_path.iterdir()) == []


def test_folders_without_erasures_are_refused_or_empty(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="it has no file key"):
        read_erasure_set(tmp_path)
    (tmp_path / "headrace.json").write_text("{}")
    assert read_erasure_set(tmp_path) == ErasureSet()
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(OperatorError, match="no erasures that can be read"):
        read_erasure_set(tmp_path / "other.json")


def test_erasures_that_the_backup_does_not_have_done_are_pending_after_a_merge(
    tmp_path: Path,
) -> None:
    known = ErasureSet(
        "ab" * 32, (done(erasure("era_a", 1)), done(erasure("era_b", 2)), erasure("era_c", 3))
    )
    restored = FileErasures(tmp_path / "erasures")
    restored.set_key(bytes.fromhex("ab" * 32))
    restored.put(done(erasure("era_a", 1)))
    restored.put(erasure("era_b", 2))
    merge_erasures(restored, tmp_path / "erasures", known)
    states = [(one.id, one.is_done, one.plan) for one in restored.all()]
    assert states == [("era_a", True, None), ("era_b", False, None), ("era_c", False, None)]


def test_erasures_of_another_data_directory_are_refused(tmp_path: Path) -> None:
    restored = filled(tmp_path / "erasures")
    with pytest.raises(OperatorError, match="belong to another data directory"):
        merge_erasures(
            restored, tmp_path / "erasures", ErasureSet("ab" * 32, (erasure("era_a", 1),))
        )
