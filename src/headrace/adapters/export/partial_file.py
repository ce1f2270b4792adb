"""The file of an export, and what an interrupted one leaves behind to go on from.

`OUTPUT.partial` is a directory with four files: `export` (the request and the plan, written once),
`data` (the beginning of the file), `chunks` (a line for each chunk that is complete in `data`) and
`lock`, which keeps a second export to OUTPUT away. The whole file is renamed to OUTPUT at the end.
"""

import errno
import fcntl
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, Literal, Self

import msgspec
from msgspec import Struct

from headrace.adapters.data_dir.files import sync_directory, write_atomically
from headrace.base.errors import OperatorError, system_reason
from headrace.model.export import ExportPlan, ExportRequest

PARTIAL_SUFFIX: Final = ".partial"
_EXPORT, _DATA, _CHUNKS, _LOCK = "export", "data", "chunks", "lock"

_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""What the kernel says of a file system without locks, as some of the network are."""

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
        """Look for an interrupted export.

        Raises `OperatorError` where OUTPUT exists, or what another export to it left or writes.
        """
        if output.exists():  # also the paths without a name, such as "/"
            raise OperatorError(f"cannot export to {output}: it exists")
        self._output = output
        self._request = request
        self.directory = output.with_name(output.name + PARTIAL_SUFFIX)
        self._data: BinaryIO
        self._lines: BinaryIO
        self._files = ExitStack()
        self._is_locked = False
        self._memos: list[bytes] = []
        if not output.parent.is_dir():
            raise OperatorError(
                f"cannot export to {output}: the directory {output.parent} is missing"
            )
        self.plan: ExportPlan | None = None
        self.chunks = 0
        self.size = 0
        self._lines_size = 0
        self.memos: tuple[bytes, ...] = ()
        if self.directory.is_dir():
            try:
                self._take_lock()
                self._read()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, plan: ExportPlan) -> None:
        """Write down what is exported, unless an earlier run has done so, and open the file.

        Raises `OperatorError` where another export to OUTPUT has begun since this one was made.
        """
        if self.plan is None:
            if not self._is_locked:
                self._create_directory()
                self._take_lock()
            (self.directory / _EXPORT).unlink(missing_ok=True)  # its data is an OUTPUT already
            self._open("wb")
            write_atomically(
                self.directory / _EXPORT, msgspec.json.encode(_Begun(self._request, plan, _LAYOUT))
            )
            self.plan = plan
            return
        self._open("r+b")
        self._data.truncate(self.size)
        self._data.seek(self.size)
        self._lines.truncate(self._lines_size)
        self._lines.seek(self._lines_size)

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
        """Rename the whole file to OUTPUT and remove the rest.

        Raises `OperatorError` where another program has created OUTPUT since the export began.
        """
        self._data.flush()
        os.fsync(self._data.fileno())
        if self._output.exists():
            raise OperatorError(
                f"cannot export to {self._output}: another program has created it meanwhile; move "
                f"it away, and the same command ends the export in {self.directory}"
            )
        (self.directory / _DATA).rename(self._output)
        sync_directory(self._output.parent)
        self.close()
        shutil.rmtree(self.directory)

    def close(self) -> None:
        """Close the files; what is complete stays. May be called twice."""
        self._files.close()

    def _take_lock(self) -> None:
        lock = self._files.enter_context((self.directory / _LOCK).open("ab"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OperatorError(
                f"cannot export to {self._output}: another export to it is running"
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        self._is_locked = True

    def _create_directory(self) -> None:
        try:
            self.directory.mkdir(mode=0o700, exist_ok=True)
        except FileNotFoundError as error:  # what the kernel says of files in /proc
            raise OperatorError(
                f"cannot create {self.directory}: {system_reason(error)}"
            ) from error

    def _open(self, mode: Literal["wb", "r+b"]) -> None:
        self._data = self._files.enter_context((self.directory / _DATA).open(mode))
        self._lines = self._files.enter_context((self.directory / _CHUNKS).open(mode))

    def _read(self) -> None:
        self.plan = self._read_plan()
        if self.plan is not None:
            self._read_chunks()

    def _read_plan(self) -> ExportPlan | None:
        try:
            content = (self.directory / _EXPORT).read_bytes()
        except FileNotFoundError:
            return None
        if not (self.directory / _DATA).exists():  # a kill came after it had got its name
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
            if not line.endswith(b"\n"):
                break  # a kill or a full disk interrupted its writing
            try:
                chunk = msgspec.json.decode(line, type=_ChunkLine)
            except msgspec.MsgspecError:
                break  # a power cut left other bytes
            self.chunks, self.size = chunk.chunks, chunk.size
            self._lines_size += len(line)
            memos += chunk.memos
        self.memos = tuple(memos)

    def _refusal(self, reason: str) -> OperatorError:
        return OperatorError(
            f"cannot continue the export in {self.directory}: {reason}; remove the directory to "
            "begin again"
        )
