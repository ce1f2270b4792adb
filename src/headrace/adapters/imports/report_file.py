"""The report file of an import: a JSON object for each line that was not taken."""

from pathlib import Path
from typing import IO, Self

from headrace.base.errors import OperatorError
from headrace.base.json_text import encode_json
from headrace.model.imports import RefusedLine


class ReportFile:
    """Writes the report, within a `with` block. Raises `OperatorError` where it cannot."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file: IO[bytes] = path.open("wb")
        except OSError as error:
            raise OperatorError(f"cannot write {path}: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()  # writes what is buffered
        except OSError as error:
            raise OperatorError(f"cannot write {self._path}: {error.strerror}") from error

    def add(self, refused: RefusedLine) -> None:
        """Write one line."""
        try:
            self._file.write(encode_json(refused) + b"\n")
        except OSError as error:
            raise OperatorError(f"cannot write {self._path}: {error.strerror}") from error
