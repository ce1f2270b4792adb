"""The report file of an import: a JSON object for each line that was not taken."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from headrace.base.errors import OperatorError, system_reason
from headrace.base.json_text import encode_json
from headrace.model.imports import RefusedLine


class ReportFile:
    """Writes the report, within a `with` block. Raises `OperatorError` where it cannot."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _naming(path):
            self._file: IO[bytes] = path.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with _naming(self._path):
            self._file.close()  # writes what is buffered

    def add(self, refused: RefusedLine) -> None:
        """Write one line."""
        with _naming(self._path):
            self._file.write(encode_json(refused) + b"\n")


@contextmanager
def _naming(path: Path) -> Generator[None]:
    """Name the report in errors: what is buffered is written later, by calls that name no file."""
    try:
        yield
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {system_reason(error)}") from error
