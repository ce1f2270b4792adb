"""The format of a data directory: one file tells it, and everybody looks there before all else.

Store, ledger and directory have schema versions of their own, which they migrate themselves. This
one is for what no part can change alone: which files there are and how they belong together.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from headrace import __version__
from headrace.adapters.data_dir.files import write_atomically
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.base.errors import OperatorError

FIRST_FORMAT = 1
"""Also that of a directory without the file: it is older than the file."""


class FormatMarker(Struct, frozen=True):
    """What the file says: the format, and the version of Headrace that wrote it last."""

    format: int
    written_by: str


class FormatMigration(Struct, frozen=True):
    """Brings a directory of the format before to `format`. May be run again after a crash."""

    format: int
    apply: Callable[[Path], None]


FORMAT_MIGRATIONS: tuple[FormatMigration, ...] = ()
"""In order, one for each format after the first."""


def newest_format(migrations: Sequence[FormatMigration] = FORMAT_MIGRATIONS) -> int:
    """Return the format that this version writes."""
    return migrations[-1].format if migrations else FIRST_FORMAT


def ensure_current_format(
    root: Path, migrations: Sequence[FormatMigration] = FORMAT_MIGRATIONS
) -> bool:
    """Tell whether a directory can be used as it is; a new one gets its stamp here.

    False means that `migrate_data_dir` is due. Raises `OperatorError` when a newer version wrote
    it, or it is the rest of a restore that was broken off.
    """
    paths = DataDirPaths(root)
    if paths.unfinished_restore.exists():
        raise OperatorError(
            f"a restore into {root} was broken off: empty the directory and restore again"
        )
    found = read_format_marker(root)
    if found is None and not paths.has_data:
        _write_format_marker(paths, newest_format(migrations))
        return True
    return found is not None and _has_newest_format(root, found, migrations)


def migrate_data_dir(root: Path, migrations: Sequence[FormatMigration] = FORMAT_MIGRATIONS) -> None:
    """Bring a directory to the newest format. Nothing else may use it. Raises `OperatorError`."""
    paths = DataDirPaths(root)
    ensure_current_format(root, migrations)
    found = read_format_marker(root)
    reached = FIRST_FORMAT if found is None else found.format
    for migration in migrations:
        if migration.format > reached:
            migration.apply(root)
            _write_format_marker(paths, migration.format)
    if found is None or found.written_by != __version__:
        _write_format_marker(paths, newest_format(migrations))


def read_format_marker(root: Path) -> FormatMarker | None:
    """Return what the file of a directory says; None where there is none."""
    path = DataDirPaths(root).version
    try:
        return msgspec.json.decode(path.read_bytes(), type=FormatMarker)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise OperatorError(
            f"{path} does not tell the format of the data directory any more: {error}"
        ) from error


def _has_newest_format(
    root: Path, marker: FormatMarker, migrations: Sequence[FormatMigration]
) -> bool:
    newest = newest_format(migrations)
    if marker.format > newest:
        raise OperatorError(
            f"the data directory {root} was written by Headrace {marker.written_by} in format "
            f"{marker.format} and this is Headrace {__version__}, which knows formats up to "
            f"{newest}: use the newer version"
        )
    return marker.format == newest


def _write_format_marker(paths: DataDirPaths, number: int) -> None:
    content = msgspec.json.encode(FormatMarker(format=number, written_by=__version__)) + b"\n"
    try:
        write_atomically(paths.version, content)
    except OSError as error:
        raise OperatorError(
            f"cannot write to the data directory {paths.root}: {error.strerror}"
        ) from error
