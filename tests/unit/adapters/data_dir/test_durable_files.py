"""Names and inodes reach the disk in an order that no power cut can mix up."""

import errno
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from headrace.adapters.data_dir import files
from headrace.adapters.data_dir.files import (
    create_file_durably,
    create_private_directory,
    remove_durably,
    write_atomically,
)
from headrace.adapters.event_log.file_ops import FileOps, create_directory
from testing.open_files import nameless


@pytest.fixture
def at_syncs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[set[str], set[str]]]:
    """At each sync of a directory: the names in it, and the nameless files that are open."""
    seen: list[tuple[set[str], set[str]]] = []
    sync: Callable[[Path], None] = files.sync_directory

    def watched(path: Path) -> None:
        seen.append(({file.name for file in path.iterdir()}, nameless(path)))
        sync(path)

    monkeypatch.setattr(files, "sync_directory", watched)
    return seen


def test_removed_files_are_open_until_their_names_are_gone_from_the_disk(
    tmp_path: Path, at_syncs: list[tuple[set[str], set[str]]]
) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    remove_durably(tmp_path, [tmp_path / "a", tmp_path / "missing", tmp_path / "b"])
    assert at_syncs == [({"c"}, {"a", "b"})]
    assert nameless(tmp_path) == set()


def test_many_files_are_removed_some_at_a_time(
    tmp_path: Path, at_syncs: list[tuple[set[str], set[str]]]
) -> None:
    paths = [tmp_path / f"{number}" for number in range(150)]
    for path in paths:
        path.touch()
    remove_durably(tmp_path, paths)
    assert [len(names) for names, _ in at_syncs] == [86, 22, 0]
    assert [len(open_files) for _, open_files in at_syncs] == [64, 64, 22]


def test_nothing_is_synced_where_nothing_is_removed(
    tmp_path: Path, at_syncs: list[tuple[set[str], set[str]]]
) -> None:
    remove_durably(tmp_path, [])
    assert at_syncs == []


def test_replaced_content_is_open_until_the_new_one_has_the_name_on_disk(
    tmp_path: Path, at_syncs: list[tuple[set[str], set[str]]]
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert at_syncs == [({"file"}, set()), ({"file"}, {"file"})]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes that were synced, in order."""
    inodes: list[int] = []
    fsync: Callable[[int], None] = os.fsync

    def watched(descriptor: int) -> None:
        inodes.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return inodes


def test_a_new_file_is_on_disk_before_its_name_is_given(
    tmp_path: Path, synced: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    link: Callable[[Path, Path], None] = os.link
    at_link: list[list[int]] = []

    def watched(source: Path, destination: Path) -> None:
        at_link.append(list(synced))
        link(source, destination)

    monkeypatch.setattr(os, "link", watched)
    create_file_durably(path := tmp_path / "file")
    assert at_link == [[inode(path)]]
    assert synced == [inode(path), inode(tmp_path)]
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_another_process_creates_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    link: Callable[[Path, Path], None] = os.link

    def second(source: Path, destination: Path) -> None:
        destination.write_bytes(b"of the first process")
        link(source, destination)

    monkeypatch.setattr(os, "link", second)
    create_file_durably(path)
    create_file_durably(path)
    assert path.read_bytes() == b"of the first process"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_file_is_created_where_the_file_system_has_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(_source: Path, _destination: Path) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", unsupported)
    create_file_durably(path := tmp_path / "file")
    assert path.read_bytes() == b""
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "create", [create_private_directory, partial(create_directory, file_ops=FileOps())]
)
def test_new_directories_are_on_disk_before_their_names(
    tmp_path: Path, synced: list[int], create: Callable[[Path], None]
) -> None:
    create(path := tmp_path / "outer" / "inner")
    outer, inner = inode(path.parent), inode(path)
    assert synced == [outer, inode(tmp_path), inner, outer]
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    synced.clear()
    create(path)
    assert synced == []


def inode(path: Path) -> int:
    return path.stat().st_ino
