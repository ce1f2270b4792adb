"""Which segments a log's directory says it has."""

import shutil
from pathlib import Path

import pytest

from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.adapters.event_log.segment_format import segment_name


def test_directory_that_cannot_be_listed_is_an_error_and_not_an_empty_log(tmp_path: Path) -> None:
    """A file in its place fails to be listed for every user, even for root."""
    directory = opened_and_removed(tmp_path / "worker-0")
    directory.path.touch()
    with pytest.raises(NotADirectoryError):
        directory.sequences()


def test_removed_directory_has_no_segments(tmp_path: Path) -> None:
    assert opened_and_removed(tmp_path / "worker-0").sequences() == []


def opened_and_removed(path: Path) -> LogDirectory:
    path.mkdir()
    directory = LogDirectory(path, file_ops=FileOps())
    shutil.rmtree(path)
    return directory


def test_segments_are_listed_in_order_without_other_files(tmp_path: Path) -> None:
    copied = f"copy of {segment_name(3)}"
    for name in (segment_name(12), segment_name(2), "durable", copied):
        (tmp_path / name).touch()
    assert LogDirectory(tmp_path, file_ops=FileOps()).sequences() == [2, 12]
