"""The format of a data directory. A marker file has it and is read before any other file.

Store, ledger and directory have schema versions of their own and migrate themselves. The format
covers what none of them can change alone: which files exist and how they belong together.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from headrace import __version__
from headrace.adapters.data_dir.files import write_atomically
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.base.errors import OperatorError, system_reason

FIRST_FORMAT = 1
"""Also the format of a directory with data and without the marker: it is older than the marker."""


class FormatMarker(Struct, frozen=True):
    """The content of the marker: the format, and the last version of Headrace that wrote it."""

    format: int
    written_by: str


class FormatMigration(Struct, frozen=True):
    """Migrates a directory from the previous format to `format`. Safe to repeat after a crash."""

    format: int
    apply: Callable[[Path], None]


FORMAT_MIGRATIONS: tuple[FormatMigration, ...] = ()
"""In order, one for each format after the first."""


def newest_format(migrations: Sequence[FormatMigration] = FORMAT_MIGRATIONS) -> int:
    """Return the format that this version writes."""
    return migrations[-1].format if migrations else FIRST_FORMAT


def has_current_format(
    root: Path, migrations: Sequence[FormatMigration] = FORMAT_MIGRATIONS
) -> bool:
    """Return whether the marker of a directory has the newest format; without a marker: False.

    Raises `OperatorError` when a newer version wrote it, or a restore into it was interrupted.
    """
    marker = _read_supported_marker(root, migrations)
    return marker is not None and marker.format == newest_format(migrations)


def ensure_format_marker(
    root: Path, migrations: Sequence[FormatMigration] = FORMAT_MIGRATIONS
) -> None:
    """Write the marker of a new directory; one that has data or a marker is left as it is.

    Needs no lock: every process writes the same content. Raises `OperatorError`.
    """
    paths = DataDirPaths(root)
    if not paths.has_data and not paths.format_marker.exists():
        _write_format_marker(paths, newest_format(migrations))


def migrate_data_dir(
    root: Path,
    migrations: Sequence[FormatMigration] = FORMAT_MIGRATIONS,
    *,
    is_restoring: bool = False,
) -> None:
    """Migrate a directory to the newest format; the caller holds its lock.

    `is_restoring` accepts a directory whose restore is not finished. Raises `OperatorError` as
    `has_current_format` does, or when the marker cannot be written.
    """
    ensure_format_marker(root, migrations)
    paths = DataDirPaths(root)
    marker = _read_supported_marker(root, migrations, is_restoring=is_restoring)
    current = FIRST_FORMAT if marker is None else marker.format
    for migration in migrations:
        if migration.format > current:
            migration.apply(root)
            _write_format_marker(paths, migration.format)
    if marker is None or marker.written_by != __version__:
        _write_format_marker(paths, newest_format(migrations))


def read_format_marker(root: Path) -> FormatMarker | None:
    """Return the marker of a directory; None where it has none. Raises `OperatorError`."""
    path = DataDirPaths(root).format_marker
    try:
        return msgspec.json.decode(path.read_bytes(), type=FormatMarker)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {system_reason(error)}") from error
    except msgspec.MsgspecError as error:
        raise OperatorError(f"cannot decode {path}: {error}") from error


def _read_supported_marker(
    root: Path, migrations: Sequence[FormatMigration], *, is_restoring: bool = False
) -> FormatMarker | None:
    restore = DataDirPaths(root).unfinished_restore
    if not is_restoring and restore.exists():
        has_erasures = restore.stat().st_size > 0
        kept = f" but for {restore.name}, which has its erasures," if has_erasures else ""
        raise OperatorError(
            f"a restore into {root} was interrupted: empty the directory{kept} and restore again"
        )
    marker, newest = read_format_marker(root), newest_format(migrations)
    if marker is not None and marker.format > newest:
        raise OperatorError(
            f"the data directory {root} was written by Headrace {marker.written_by} in format "
            f"{marker.format}; this is Headrace {__version__}, which supports formats up to "
            f"{newest}: use the newer version"
        )
    return marker


def _write_format_marker(paths: DataDirPaths, number: int) -> None:
    content = msgspec.json.encode(FormatMarker(format=number, written_by=__version__)) + b"\n"
    try:
        write_atomically(paths.format_marker, content)
    except OSError as error:
        raise OperatorError(
            f"cannot write to the data directory {paths.root}: {system_reason(error)}"
        ) from error
