"""Directories that hold what is nobody else's business."""

from pathlib import Path

from headrace.base.errors import OperatorError


def make_private_directory(path: Path) -> None:
    """Make a directory that only its owner may enter, with its parents.

    Leaves one that is there as it is. Raises `OperatorError` when it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"cannot make the directory {path}: {error.strerror}") from error
