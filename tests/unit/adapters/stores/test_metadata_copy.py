"""The copy of the embedded store's metadata: what is restored from it, and what is left alone."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.adapters.store.chdb.files.metadata_copy import (
    copy_path,
    forget_metadata,
    make_metadata_durable,
    restore_metadata,
)

TABLES = ("errors", "events", "performance", "schema_version")
DATABASE_UUID = "d0000000-0000-4000-8000-000000000000"
UUIDS = {name: f"{n}aaaaaaa-0000-4000-8000-000000000000" for n, name in enumerate(TABLES)}
DATABASE_FILE = "metadata/headrace.sql"
DATABASE_DIRECTORY = f"store/d00/{DATABASE_UUID}"

Tree = Mapping[str, bytes]


def text_of(name: str, uuid: str) -> str:
    return f"ATTACH TABLE _ UUID '{uuid}'\n(\n    `{name}_id` String\n)\nENGINE = MergeTree\n"


def file_of(name: str) -> str:
    return f"{DATABASE_DIRECTORY}/{name}.sql"


def table_directory(name: str) -> str:
    return f"store/{UUIDS[name][:3]}/{UUIDS[name]}"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A closed store with a view and tables of one part each, and the copy."""
    store = tmp_path / "store"
    for name in TABLES:
        (store / table_directory(name) / "all_1_1_0").mkdir(parents=True)
    directory = store / DATABASE_DIRECTORY
    directory.mkdir(parents=True)
    for name in TABLES:
        (directory / f"{name}.sql").write_text(text_of(name, UUIDS[name]))
    view = "ATTACH VIEW _ UUID 'e0000000-0000-4000-8000-000000000000'\nAS SELECT 1\n"
    (directory / "visits.sql").write_text(view)
    (store / "metadata").mkdir()
    (store / DATABASE_FILE).write_text(
        f"ATTACH DATABASE _ UUID '{DATABASE_UUID}'\nENGINE = Atomic\n"
    )
    (store / "metadata" / "headrace").symlink_to(f"../{DATABASE_DIRECTORY}")
    make_metadata_durable(store)
    return store


def contents(store: Path) -> Tree:
    """Return everything below a store: the bytes of files, the targets of links."""
    return {
        str(path.relative_to(store)): (
            f"-> {path.readlink()}".encode()
            if path.is_symlink()
            else b"directory"
            if path.is_dir()
            else path.read_bytes()
        )
        for path in store.rglob("*")
    }


def remove_tree(path: Path) -> None:
    for below in sorted(path.rglob("*"), reverse=True):
        below.rmdir() if below.is_dir() and not below.is_symlink() else below.unlink()
    path.rmdir()


FILES = (DATABASE_FILE, file_of("visits"), *map(file_of, TABLES))


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_missing_or_cut_at_any_byte_or_zeroed_is_restored(
    store: Path, file: str
) -> None:
    whole = contents(store)
    text = whole[file]
    (store / file).unlink()
    assert restore_metadata(store) == [file]
    assert contents(store) == whole
    damages = [text[:length] for length in range(len(text))]
    damages += [bytes(len(text)), text[:30] + bytes(len(text) - 30), b"\xff" + text[1:]]
    for damage in damages:
        (store / file).write_bytes(damage)
        assert restore_metadata(store) == [file]
        assert contents(store) == whole


def test_a_name_that_leads_to_the_file_of_another_table_is_restored_and_the_other_stays(
    store: Path,
) -> None:
    whole = contents(store)
    (store / file_of("events")).unlink()
    (store / file_of("events")).hardlink_to(store / file_of("errors"))

    assert restore_metadata(store) == [file_of("events")]

    assert contents(store) == whole


def drop_metadata(store: Path) -> None:
    remove_tree(store / "metadata")


def drop_database_directory(store: Path) -> None:
    remove_tree((store / DATABASE_DIRECTORY).parent)


def drop_both(store: Path) -> None:
    drop_metadata(store)
    drop_database_directory(store)


def drop_link(store: Path) -> None:
    (store / "metadata" / "headrace").unlink()


ALL_FILES = [file_of(name) for name in (*TABLES, "visits")]


@pytest.mark.parametrize(
    ("drop", "restored"),
    [
        (drop_metadata, [DATABASE_FILE, "metadata/headrace"]),
        (drop_database_directory, ALL_FILES),
        (drop_both, [*ALL_FILES, DATABASE_FILE, "metadata/headrace"]),
        (drop_link, ["metadata/headrace"]),
    ],
)
def test_a_directory_or_link_that_the_check_of_the_file_system_took_away_is_restored(
    store: Path, drop: Callable[[Path], None], restored: list[str]
) -> None:
    whole = contents(store)
    drop(store)

    assert restore_metadata(store) == restored

    assert contents(store) == whole


@pytest.mark.parametrize(
    "name", ["metadata/headrace", DATABASE_FILE, file_of("events"), "metadata"]
)
def test_what_has_the_name_of_metadata_and_is_something_else_is_moved_to_damaged(
    store: Path, name: str
) -> None:
    whole = contents(store)
    path = store / name
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
        path.write_text("a file")
    else:
        path.unlink()
        (path / "part").mkdir(parents=True)

    assert name in restore_metadata(store) or name == "metadata"

    assert contents(store) == whole
    (moved,) = (store.parent / "damaged").iterdir()
    assert moved.name == f"{path.name}.1"


def test_a_table_without_its_directory_is_not_restored_so_that_its_loss_is_noticed(
    store: Path,
) -> None:
    remove_tree(store / table_directory("events"))
    for name in ("events", "errors"):
        (store / file_of(name)).unlink()

    assert restore_metadata(store) == [file_of("errors")]

    assert not (store / file_of("events")).exists()


def test_nothing_is_restored_where_no_table_has_a_directory(store: Path) -> None:
    for name in ("errors", "events", "performance"):
        remove_tree(store / table_directory(name))
    drop_both(store)
    left = contents(store)

    assert restore_metadata(store) == []

    assert contents(store) == left


def test_a_database_that_was_created_again_is_left_alone(store: Path) -> None:
    other = "f0000000-0000-4000-8000-000000000000"
    (store / DATABASE_FILE).write_text(f"ATTACH DATABASE _ UUID '{other}'\nENGINE = Atomic\n")
    (store / file_of("events")).unlink()
    left = contents(store)

    assert restore_metadata(store) == []

    assert contents(store) == left


def test_a_definition_that_changed_since_the_copy_is_left_alone(store: Path) -> None:
    changed = text_of("events", UUIDS["events"]).replace("String", "UInt8")
    recreated = text_of("errors", "c0000000-0000-4000-8000-000000000000")
    (store / file_of("events")).write_text(changed)
    (store / file_of("errors")).write_text(recreated)
    left = contents(store)

    assert restore_metadata(store) == []

    assert contents(store) == left


def test_the_copy_is_renewed_with_the_definitions_and_keeps_them_while_a_file_is_missing(
    store: Path,
) -> None:
    changed = text_of("events", UUIDS["events"]).replace("String", "UInt8")
    (store / file_of("events")).write_text(changed)
    make_metadata_durable(store)
    (store / file_of("events")).unlink()
    make_metadata_durable(store)

    assert restore_metadata(store) == [file_of("events")]

    assert (store / file_of("events")).read_text() == changed


def test_nothing_is_restored_without_a_copy(store: Path) -> None:
    forget_metadata(store)
    forget_metadata(store)
    drop_both(store)

    assert restore_metadata(store) == []


@pytest.mark.parametrize("damage", [b"", b"{", b'{"database":"","objects":{}}', b"\xff"])
def test_nothing_is_restored_from_a_copy_that_cannot_be_read(store: Path, damage: bytes) -> None:
    copy_path(store).write_bytes(damage)
    drop_both(store)

    assert restore_metadata(store) == []


def test_a_copy_that_cannot_be_read_is_written_again(store: Path) -> None:
    whole = contents(store)
    copy_path(store).write_bytes(b"")

    make_metadata_durable(store)

    assert contents(store) == whole
