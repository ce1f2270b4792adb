"""Freezes the embedded store: a copy of its directory in which all parts are hard links."""

import os
import shutil
from pathlib import Path

from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.parameters import quoted

_SHADOW = "shadow"
"""Where ClickHouse puts what is frozen, below the store."""

_LEFT_OUT = frozenset({_SHADOW, "tmp", "status"})
_LINKED = "detached"
_COPIED = "deduplication_logs"
_DEPTH_OF_PARTS = 4
"""A part is a directory `store/abc/abcd…/PART`."""


def freeze_store(engine: ChdbEngine, into: Path) -> None:
    """Copy an open store. No insert may run meanwhile; merges and selects may.

    Every part is a hard link that ClickHouse makes. What stands around the parts is small and
    copied; links are copied as links, or the copy would open empty. `into` must not exist, and be
    on the file system of the store for this to take no room. Raises `EngineFailure` or `OSError`.
    """
    frozen = engine.directory / _SHADOW / into.parent.name
    try:
        for table in _tables(engine):
            engine.execute(
                f"ALTER TABLE `{DATABASE}`.`{table}` FREEZE WITH NAME {quoted(frozen.name)}"
            )
        _copy_surroundings(engine.directory, into)
        for part in frozen.glob("store/*/*/*"):
            shutil.move(part, into / part.relative_to(frozen))
    finally:
        shutil.rmtree(frozen, ignore_errors=True)


def remove_frozen(store: Path) -> None:
    """Remove what a killed engine had frozen; the store's own parts are not touched."""
    shutil.rmtree(store / _SHADOW, ignore_errors=True)


def _tables(engine: ChdbEngine) -> list[str]:
    rows = engine.execute(
        f"SELECT name FROM system.tables WHERE database = {quoted(DATABASE)} "  # noqa: S608 - ours
        "AND engine != 'View' ORDER BY name"
    )
    return [str(name) for (name,) in rows]


def _copy_surroundings(store: Path, into: Path) -> None:
    for walked, directories, files in os.walk(store):
        place = Path(walked)
        below = place.relative_to(store)
        (into / below).mkdir(mode=0o700)
        for name in [name for name in directories if (place / name).is_symlink()]:
            (into / below / name).symlink_to((place / name).readlink())
        for name in files:
            _copy(place / name, into / below / name)
        directories[:] = [name for name in directories if _is_entered(place / name, store)]


def _is_entered(directory: Path, store: Path) -> bool:
    below = directory.relative_to(store).parts
    if directory.is_symlink() or below[0] in _LEFT_OUT:
        return False
    return len(below) != _DEPTH_OF_PARTS or below[-1] in (_LINKED, _COPIED)


def _copy(file: Path, into: Path) -> None:
    if file.name in _LEFT_OUT:
        return
    if _LINKED in file.parts:
        os.link(file, into)
    else:
        shutil.copy2(file, into, follow_symlinks=False)
