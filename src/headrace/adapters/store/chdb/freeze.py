"""Freezes the embedded store: a copy of its directory in which all parts are hard links."""

import os
import shutil
from pathlib import Path

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.parameters import quote_literal

_SHADOW = "shadow"
"""The directory below the store in which ClickHouse puts frozen parts."""

_EXCLUDED = frozenset({_SHADOW, "tmp", "status"})
_LINKED = "detached"
_COPIED = "deduplication_logs"
_DEPTH_OF_PARTS = 4
"""A part is a directory `store/abc/abcd…/PART`."""


def freeze_store(chdb: ChdbInstance, destination: Path) -> None:
    """Copy an open store. No insert may run meanwhile; merges and selects may.

    ClickHouse creates the parts of the copy as hard links. All other files are small and copied.
    Symbolic links stay symbolic links, or the copy would open empty. `destination` must not exist;
    on the file system of the store the copy takes no extra space. Raises `ClickHouseError` or
    `OSError`.
    """
    frozen = chdb.directory / _SHADOW / destination.parent.name
    try:
        for table in _tables(chdb):
            chdb.execute(
                f"ALTER TABLE `{DATABASE}`.`{table}` FREEZE WITH NAME {quote_literal(frozen.name)}"
            )
        _copy_metadata(chdb.directory, destination)
        for part in frozen.glob("store/*/*/*"):
            shutil.move(part, destination / part.relative_to(frozen))
    finally:
        shutil.rmtree(frozen, ignore_errors=True)


def remove_frozen(store: Path) -> None:
    """Remove the frozen parts that a killed engine process left; the store's own parts stay."""
    shutil.rmtree(store / _SHADOW, ignore_errors=True)


def _tables(chdb: ChdbInstance) -> list[str]:
    rows = chdb.execute(
        f"SELECT name FROM system.tables WHERE database = {quote_literal(DATABASE)} "  # noqa: S608 - ours
        "AND engine != 'View' ORDER BY name"
    )
    return [str(name) for (name,) in rows]


def _copy_metadata(store: Path, destination: Path) -> None:
    for root, directories, files in os.walk(store):
        source = Path(root)
        relative = source.relative_to(store)
        (destination / relative).mkdir(mode=0o700)
        for name in [name for name in directories if (source / name).is_symlink()]:
            (destination / relative / name).symlink_to((source / name).readlink())
        for name in files:
            _copy(source / name, destination / relative / name)
        directories[:] = [name for name in directories if _is_traversed(source / name, store)]


def _is_traversed(directory: Path, store: Path) -> bool:
    relative = directory.relative_to(store).parts
    if directory.is_symlink() or relative[0] in _EXCLUDED:
        return False
    return len(relative) != _DEPTH_OF_PARTS or relative[-1] in (_LINKED, _COPIED)


def _copy(file: Path, destination: Path) -> None:
    if file.name in _EXCLUDED:
        return
    if _LINKED in file.parts:
        os.link(file, destination)
    else:
        shutil.copy2(file, destination, follow_symlinks=False)
