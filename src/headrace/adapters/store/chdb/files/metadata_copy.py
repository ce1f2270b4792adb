"""A copy of what chDB knows of the tables, from which files that it lost are restored.

chDB keeps the definition of each table in a file, in a directory that belongs to the database.
Without them it opens an empty store, whatever the directories of the tables contain. On a file
system without a journal a power cut can take them although they were synced long before: a
directory that was being created may have old bytes, with a name that leads to the same inode, and
the check of the file system lets one of the two names go. So one more file has the text of them
all.

Below the store, `metadata/DATABASE.sql` has the id of the database, `metadata/DATABASE` is a link
to its directory, and that has a file for each table and view. The directory of a database or a
table is `store/abc/abcd…`, after its id.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.files import (
    create_private_directory,
    remove_durably,
    set_aside,
    sync_directory,
    write_atomically,
)
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.store.chdb.files.store_sync import sync_store_files
from headrace.adapters.store.dialect.ddl import DATABASE, VERSION_TABLE
from headrace.model.storage import STORAGE_TABLES

_NECESSARY: Final = frozenset({*STORAGE_TABLES, VERSION_TABLE})
_SUFFIX: Final = ".sql"
_FIRST_LINE: Final = re.compile(r"ATTACH ([A-Z ]+) _ UUID '([0-9a-f-]{36})'[^\n]*\n")


class _Copy(Struct, frozen=True):
    """The text of a database's file, and of those of its tables and views, by their names."""

    database: str
    objects: Mapping[str, str]

    @property
    def texts(self) -> Iterable[str]:
        return (self.database, *self.objects.values())


class _Header(NamedTuple):
    """What the first line of a file says: `TABLE`, for example, and the id."""

    kind: str
    uuid: str


def make_metadata_durable(store: Path, database: str = DATABASE) -> None:
    """Sync the files of a store that chDB leaves to the system, and renew the copy of its metadata.

    Call it after statements that change the definition of a table, before anything that counts on
    the change. Raises `OSError`.
    """
    sync_store_files(store)
    metadata = _read_metadata(store, database)
    if metadata is not None and metadata != _read_copy(store, database):
        content = msgspec.json.format(msgspec.json.encode(metadata))
        write_atomically(copy_path(store, database), content + b"\n")


def forget_metadata(store: Path, database: str = DATABASE) -> None:
    """Remove the copy durably, before a table is dropped on purpose. Raises `OSError`."""
    remove_durably(store, [copy_path(store, database)])


def restore_metadata(store: Path, database: str = DATABASE) -> list[str]:
    """Restore missing and damaged metadata of a closed store, durably.

    Left alone are tables without a directory: they have no rows, and new ones must be noticed. So
    is a database that was created again. Return the restored paths, relative to the store. Raises
    `OSError`.
    """
    copy = _read_copy(store, database)
    if copy is None or _is_other_database(_database_file(store, database), copy):
        return []
    wanted = {name: text for name, text in copy.objects.items() if _has_data(store, text)}
    if wanted.keys().isdisjoint(STORAGE_TABLES):
        return []
    directory = _directory_of(store, copy.database)
    files = {directory / f"{name}{_SUFFIX}": text for name, text in wanted.items()}
    files[_database_file(store, database)] = copy.database
    link = _database_link(store, database)
    restored = [path for path, text in files.items() if not _is_intact(path, text, copy)]
    for path in restored:
        _write(store, path, files[path])
    if not _leads_to(link, directory):
        _link(store, link, directory)
        restored.append(link)
    return [str(path.relative_to(store)) for path in restored]


def copy_path(store: Path, database: str = DATABASE) -> Path:
    """Return the path of the copy."""
    return store / f"{database}-metadata.json"


def _database_file(store: Path, database: str) -> Path:
    return store / "metadata" / f"{database}{_SUFFIX}"


def _database_link(store: Path, database: str) -> Path:
    return store / "metadata" / database


def _directory_of(store: Path, text: str) -> Path:
    """Return the directory of the database or table that a file defines."""
    uuid = _parse_header(text).uuid
    return store / "store" / uuid[:3] / uuid


def _parse_header(text: str) -> _Header:
    """Raises `ValueError`."""
    if (found := _FIRST_LINE.match(text)) is None:
        raise ValueError("the text does not begin as a metadata file does")
    return _Header(*found.groups())


def _read_text(path: Path) -> str | None:
    """Return the text of a metadata file that looks whole, else None."""
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
    is_whole = _FIRST_LINE.match(text) and text.endswith("\n") and "\0" not in text
    return text if is_whole else None


def _read_metadata(store: Path, database: str) -> _Copy | None:
    """Return the metadata of a store, or None where something necessary is not there."""
    definition = _read_text(_database_file(store, database))
    if definition is None:
        return None
    files = sorted(_directory_of(store, definition).glob(f"*{_SUFFIX}"))
    texts = {file.stem: text for file in files if (text := _read_text(file)) is not None}
    return _Copy(definition, texts) if texts.keys() >= _NECESSARY else None


def _read_copy(store: Path, database: str) -> _Copy | None:
    """Return the copy; None where there is none, or none that can be used."""
    try:
        copy = msgspec.json.decode(copy_path(store, database).read_bytes(), type=_Copy)
        for text in copy.texts:
            _parse_header(text)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None
    return copy


def _is_other_database(file: Path, copy: _Copy) -> bool:
    text = _read_text(file)
    return text is not None and _parse_header(text) not in map(_parse_header, copy.texts)


def _has_data(store: Path, text: str) -> bool:
    """Return whether an object has what it is of. A view has nothing of its own."""
    return _parse_header(text).kind != "TABLE" or _directory_of(store, text).is_dir()


def _is_intact(path: Path, wanted: str, copy: _Copy) -> bool:
    """Return whether a file is whole: as in the copy, or changed since.

    Without a journal it may have been cut off, or its name may lead to the inode of another file.
    """
    text = _read_text(path)
    if text is None or text == wanted:
        return text is not None
    others = (_parse_header(other) for other in copy.texts if other != wanted)
    return not wanted.startswith(text) and _parse_header(text) not in others


def _write(store: Path, path: Path, text: str) -> None:
    _make_directory(store, path.parent)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        set_aside(path, _damaged(store))
    write_atomically(path, text.encode())


def _leads_to(link: Path, directory: Path) -> bool:
    return link.exists() and link.samefile(directory)


def _link(store: Path, link: Path, directory: Path) -> None:
    _make_directory(store, link.parent)
    if link.is_symlink() or link.exists():
        set_aside(link, _damaged(store))
    link.symlink_to(os.path.relpath(directory, link.parent))
    sync_directory(link.parent)


def _make_directory(store: Path, path: Path) -> None:
    """Create a directory below the store, and those between the two, durably."""
    if path.is_dir():
        return
    _make_directory(store, path.parent)
    if path.is_symlink() or path.exists():
        set_aside(path, _damaged(store))
    create_private_directory(path)


def _damaged(store: Path) -> Path:
    return DataDirPaths(store.parent).damaged
