"""The file of an export, and what an interrupted one leaves behind to go on from.

`OUTPUT.partial` is a directory with three files: `export` (the request and the plan, written once),
`data` (the beginning of the file) and `chunks` (a line for each chunk that is complete in `data`).
The whole file is renamed to OUTPUT at the end.
"""

import os
import shutil
from pathlib import Path
from typing import BinaryIO, Final, Literal, Self

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.files import sync_directory, write_atomically
from headrace.base.errors import OperatorError, system_reason
from headrace.model.export import ExportPlan, ExportRequest

PARTIAL_SUFFIX: Final = ".partial"
_EXPORT, _DATA, _CHUNKS = "export", "data", "chunks"


_LAYOUT: Final = 2
"""Of the chunks, which only those of the same one can be joined to: counted up when a column
changes. There was none before the properties of Parquet and Arrow were nullable."""


class _Begun(Struct, frozen=True):
    request: ExportRequest
    plan: ExportPlan
    layout: Literal[2]


class _ChunkLine(Struct, frozen=True):
    """How many chunks are complete with the first `size` bytes, and what they add to the memos."""

    chunks: int
    size: int
    memos: tuple[bytes, ...]


class PartialFile:
    """Writes one export to a file; blocking, for one thread.

    Bytes that follow the last complete chunk are dropped when an export goes on.
    """

    def __init__(self, output: Path, request: ExportRequest) -> None:
        """Look for an interrupted export. Raises `OperatorError` where OUTPUT or another exists."""
        if output.exists():  # also the paths without a name, such as "/"
            raise OperatorError(f"cannot export to {output}: it exists")
        self._output = output
        self._request = request
        self.directory = output.with_name(output.name + PARTIAL_SUFFIX)
        self._data: BinaryIO
        self._lines: BinaryIO
        self._memos: list[bytes] = []
        if not output.parent.is_dir():
            raise OperatorError(
                f"cannot export to {output}: the directory {output.parent} is missing"
            )
        self.plan = self._read_plan()
        self.chunks = 0
        self.size = 0
        self.memos: tuple[bytes, ...] = ()
        if self.plan is not None:
            self._read_chunks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, plan: ExportPlan) -> None:
        """Write down what is exported, unless an earlier run has done so, and open the file."""
        if self.plan is None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._create_directory()
            self._open("wb")
            write_atomically(
                self.directory / _EXPORT, msgspec.json.encode(_Begun(self._request, plan, _LAYOUT))
            )
            self.plan = plan
            return
        self._open("r+b")
        self._data.truncate(self.size)
        self._data.seek(self.size)
        self._lines.seek(0, os.SEEK_END)

    def write(self, data: bytes | memoryview, memo: bytes, chunks: int | None) -> None:
        """Append bytes. With `chunks`, so many are complete, and an export can go on from here."""
        self._data.write(data)
        if memo:
            self._memos.append(memo)
        if chunks is None:
            return
        self._data.flush()
        os.fdatasync(self._data.fileno())  # before the line that says that the bytes are there
        line = _ChunkLine(chunks, self._data.tell(), tuple(self._memos))
        self._lines.write(msgspec.json.encode(line) + b"\n")
        self._lines.flush()
        self._memos.clear()

    def finish(self) -> None:
        """Rename the whole file to OUTPUT and remove the rest."""
        self._data.flush()
        os.fsync(self._data.fileno())
        self.close()
        (self.directory / _DATA).rename(self._output)
        sync_directory(self._output.parent)
        shutil.rmtree(self.directory)

    def close(self) -> None:
        """Close the files; what is complete stays. May be called twice."""
        if self.plan is not None and hasattr(self, "_data"):
            self._data.close()
            self._lines.close()

    def _create_directory(self) -> None:
        try:
            self.directory.mkdir(mode=0o700)
        except FileNotFoundError as error:  # what the kernel says of files in /proc
            raise OperatorError(
                f"cannot create {self.directory}: {system_reason(error)}"
            ) from error

    def _open(self, mode: Literal["wb", "r+b"]) -> None:
        self._data = (self.directory / _DATA).open(mode)
        self._lines = (self.directory / _CHUNKS).open(mode)

    def _read_plan(self) -> ExportPlan | None:
        try:
            content = (self.directory / _EXPORT).read_bytes()
        except FileNotFoundError:
            return None
        try:
            begun = msgspec.json.decode(content, type=_Begun)
        except msgspec.MsgspecError as error:
            raise self._refusal("it is not of an export that this version can continue") from error
        if begun.request != self._request:
            raise self._refusal("it is of another website, table, range or format")
        return begun.plan

    def _read_chunks(self) -> None:
        memos: list[bytes] = []
        for line in (self.directory / _CHUNKS).read_bytes().splitlines(keepends=True):
            try:
                chunk = msgspec.json.decode(line, type=_ChunkLine)
            except msgspec.MsgspecError:
                break  # a kill interrupted its writing
            self.chunks, self.size = chunk.chunks, chunk.size
            memos += chunk.memos
        self.memos = tuple(memos)

    def _refusal(self, reason: str) -> OperatorError:
        return OperatorError(
            f"cannot continue the export in {self.directory}: {reason}; remove the directory to "
            "begin again"
        )
