"""The format of a data directory: one file tells it, and everybody looks there before all else.

Store, ledger and directory have schema versions of their own, which they migrate themselves. This
one is for what no part can change alone: which files there are and how they belong together.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from headrace import __version__
from headrace.adapters.data_dir.files import write_whole
from headrace.adapters.data_dir.paths import DataPlaces
from headrace.base.errors import OperatorError

FIRST_FORMAT = 1
"""Also that of a directory without the file: it is older than the file."""


class Stamp(Struct, frozen=True):
    """What the file says: the format, and the version of Headrace that wrote it last."""

    format: int
    written_by: str


class Step(Struct, frozen=True):
    """Brings a directory of the format before to `format`. May be run again after a crash."""

    format: int
    apply: Callable[[Path], None]


STEPS: tuple[Step, ...] = ()
"""In order, one for each format after the first."""


def newest_format(steps: Sequence[Step] = STEPS) -> int:
    """Return the format that this version writes."""
    return steps[-1].format if steps else FIRST_FORMAT


def is_current(root: Path, steps: Sequence[Step] = STEPS) -> bool:
    """Tell whether a directory can be used as it is; a new one gets its stamp here.

    False means that `migrate` is due. Raises `OperatorError` when a newer version wrote it, or it
    is the rest of a restore that was broken off.
    """
    places = DataPlaces(root)
    if places.unfinished_restore.exists():
        raise OperatorError(
            f"a restore into {root} was broken off: empty the directory and restore again"
        )
    found = read_stamp(root)
    if found is None and not places.has_data:
        _write_stamp(places, newest_format(steps))
        return True
    return found is not None and _is_known(root, found, steps)


def migrate(root: Path, steps: Sequence[Step] = STEPS) -> None:
    """Bring a directory to the newest format. Nothing else may use it. Raises `OperatorError`."""
    places = DataPlaces(root)
    is_current(root, steps)
    found = read_stamp(root)
    reached = FIRST_FORMAT if found is None else found.format
    for step in steps:
        if step.format > reached:
            step.apply(root)
            _write_stamp(places, step.format)
    if found is None or found.written_by != __version__:
        _write_stamp(places, newest_format(steps))


def read_stamp(root: Path) -> Stamp | None:
    """Return what the file of a directory says; None where there is none."""
    path = DataPlaces(root).version
    try:
        return msgspec.json.decode(path.read_bytes(), type=Stamp)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise OperatorError(
            f"{path} does not tell the format of the data directory any more: {error}"
        ) from error


def _is_known(root: Path, stamp: Stamp, steps: Sequence[Step]) -> bool:
    newest = newest_format(steps)
    if stamp.format > newest:
        raise OperatorError(
            f"the data directory {root} was written by Headrace {stamp.written_by} in format "
            f"{stamp.format} and this is Headrace {__version__}, which knows formats up to "
            f"{newest}: use the newer version"
        )
    return stamp.format == newest


def _write_stamp(places: DataPlaces, number: int) -> None:
    content = msgspec.json.encode(Stamp(format=number, written_by=__version__)) + b"\n"
    try:
        write_whole(places.version, content)
    except OSError as error:
        raise OperatorError(
            f"cannot write to the data directory {places.root}: {error.strerror}"
        ) from error
