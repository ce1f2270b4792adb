"""A file that loses its name keeps its inode until that is on disk."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.adapters.data_dir import files
from headrace.adapters.data_dir.files import remove_durably, write_atomically

DELETED = " (deleted)"


def nameless(directory: Path) -> set[str]:
    """Return what the files were called that this process has open and that have no name left."""
    links = Path("/proc/self/fd").iterdir()
    targets = [Path(link.readlink()) for link in links if link.is_symlink()]
    return {
        target.name.removesuffix(DELETED)
        for target in targets
        if target.parent == directory and target.name.endswith(DELETED)
    }


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
