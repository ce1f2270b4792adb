"""A backup file: a tar archive of a snapshot, compressed by zstd with a checksum.

The first member is the manifest. The last one is an empty end marker: a file without it is cut off.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Generator
from io import BytesIO, RawIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import msgspec
import zstandard
from msgspec import Struct

from headrace import __version__
from headrace.adapters.backup.snapshots import Snapshot, walk_entries
from headrace.adapters.data_dir.files import sync_directory
from headrace.adapters.data_dir.format import newest_format, read_format_marker
from headrace.adapters.data_dir.paths import LOG, SEGMENT_SUFFIX, UNFINISHED_SUFFIX
from headrace.adapters.event_log.file_ops import FileOps
from headrace.adapters.event_log.segment_directory import LogDirectory
from headrace.base.errors import OperatorError, system_reason

if sys.version_info >= (3, 11, 4):
    import tarfile
else:  # whose tarfile has no filters: they refuse what would leave the directory
    from backports import tarfile  # type: ignore[import-untyped, attr-defined, no-redef, unused-ignore]

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Progress = Callable[[int, int], None]
"""Called with the bytes processed, before compression, and their total."""

_MANIFEST: Final = "backup.json"
_END: Final = "backup-complete"
_LEVEL: Final = 3
_THREADS: Final = 1
_READ_BYTES: Final = 1_048_576
_COMPRESSED_BYTES: Final = 4096
"""Read at once: so many bytes contain at most 128 MiB, all zeros, and seldom 100 KB."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class BackupManifest(Struct, frozen=True):
    """The manifest of a backup. `made` is ISO 8601 in UTC, `bytes` is before compression.

    `unreadable_logs` are the logs whose acknowledged events are not all in the backup.
    """

    format: int
    written_by: str
    made: str
    files: int
    bytes: int
    unreadable_logs: tuple[str, ...] = ()


class _Member(Struct, frozen=True):
    """A file, directory or link of a snapshot. `size` is the part of a file that belongs to it."""

    path: Path
    name: str
    size: int


def write_archive(
    snapshot: Snapshot, target: Path, *, made: str, progress: Progress
) -> BackupManifest:
    """Archive a snapshot. The file gets its name when it is complete and on disk.

    Raises `OperatorError` when the file exists, when the disk has less free space than the data
    before compression, or when writing fails.
    """
    members = _members(snapshot)
    marker = read_format_marker(snapshot.path)
    manifest = BackupManifest(
        format=newest_format() if marker is None else marker.format,
        written_by=__version__,
        made=made,
        files=len(members),
        bytes=sum(member.size for member in members),
        unreadable_logs=snapshot.unreadable,
    )
    _check_free_space(target.parent, manifest.bytes)
    with _new_file(target) as file:
        compressor = zstandard.ZstdCompressor(level=_LEVEL, threads=_THREADS, write_checksum=True)
        with (
            compressor.stream_writer(file, closefd=False) as compressed,
            tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            _add(archive, _MANIFEST, msgspec.json.encode(manifest))
            done = 0
            for member in members:
                _add_member(archive, member)
                done += member.size
                progress(done, manifest.bytes)
            _add(archive, _END, b"")
    return manifest


def check_archive(file: Path) -> None:
    """Raise `OperatorError` where a file is missing, no backup, or of a newer version.

    Only its beginning is read. What is not a file, such as a pipe, is not checked: its beginning
    would be lost.
    """
    if file.exists() and not file.is_file():
        return
    with (
        _translate_archive_errors(file),
        file.open("rb") as opened,
        tarfile.open(fileobj=_Decompressed(opened), mode="r|") as archive,
    ):
        _read_manifest(archive, file)


def read_archive(file: Path, into: Path, *, progress: Progress) -> BackupManifest:
    """Extract a backup into a directory, and return when everything is on disk.

    Raises `OperatorError` when the file is not a backup, is damaged or cut off, was made by a
    newer version, or does not fit on the disk.
    """
    with _translate_archive_errors(file), file.open("rb") as opened:
        content = _Decompressed(opened)
        with tarfile.open(fileobj=content, mode="r|") as archive:
            manifest = _read_manifest(archive, file)
            _check_free_space(into, manifest.bytes)
            _extract(archive, file, into, manifest, progress)
        while content.read(_READ_BYTES):  # to the end, where zstd verifies the checksum
            pass
        if not content.is_whole:
            raise OperatorError(f"{file} is cut off: its checksum is missing")
    os.sync()
    return manifest


def _members(snapshot: Snapshot) -> list[_Member]:
    """List a snapshot. Raises `OperatorError` where its engine stopped and is removing it."""
    root = snapshot.path
    with _translate_missing_snapshot():
        members = [
            _Member(path, str(path.relative_to(root)), _size(path, root))
            for path in walk_entries(root)
        ]
        if len(members) != snapshot.entries:
            raise FileNotFoundError
    return members


@contextlib.contextmanager
def _translate_missing_snapshot() -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise OperatorError(
            "the engine stopped during the backup and removed its snapshot: try again"
        ) from error


def _size(path: Path, snapshot: Path) -> int:
    if path.is_symlink() or path.is_dir():
        return 0
    size = path.stat().st_size
    if path.parent.parent != snapshot / LOG or path.suffix != SEGMENT_SUFFIX:
        return size
    log = LogDirectory(path.parent, file_ops=FileOps())
    try:
        end = log.durable_offset()  # the service continues to append after it
    finally:
        log.close()
    return min(size, end.offset) if path == log.segment_path(end.segment) else size


class _MemberReader:
    """Reads a member, so that an error of reading it is not one of writing the archive."""

    def __init__(self, opened: IO[bytes], name: str) -> None:
        self._opened = opened
        self._name = name

    def read(self, size: int = -1, /) -> bytes:
        """Read from the file. Raises `OperatorError`."""
        try:
            return self._opened.read(size)
        except OSError as error:
            raise OperatorError(f"cannot read {self._name}: {system_reason(error)}") from error


class _Decompressed(RawIOBase):
    """Reads the content of a compressed file. Raises `zstandard.ZstdError` where it is damaged.

    The streams of the library end silently where a file is cut off.
    """

    def __init__(self, compressed: IO[bytes]) -> None:
        self._compressed = compressed
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._content = bytearray()

    @property
    def is_whole(self) -> bool:
        """Whether the end was read, and its checksum was that of the content."""
        return self._frame.eof

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read content into a buffer and return its size, 0 at the end."""
        while not self._content and not self._frame.eof:
            compressed = self._compressed.read(_COMPRESSED_BYTES)
            if not compressed:
                break
            self._content += self._frame.decompress(compressed)
        target = memoryview(buffer)
        size = min(len(target), len(self._content))
        target[:size] = self._content[:size]
        del self._content[:size]
        return size


def _check_free_space(directory: Path, needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise OperatorError(
            f"not enough free space in {directory}: up to {needed} bytes are needed and {free} "
            "are free"
        )


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, BytesIO(content))


def _add_member(archive: tarfile.TarFile, member: _Member) -> None:
    with _translate_missing_snapshot():
        header = archive.gettarinfo(member.path, member.name)
    header.uid = header.gid = 0
    header.uname = header.gname = ""
    if header.islnk():  # a broken part that was set aside can share files with the one in its place
        header.type, header.linkname = tarfile.REGTYPE, ""
    if not header.isreg():
        archive.addfile(header)
        return
    header.size = member.size
    with _translate_missing_snapshot(), member.path.open("rb") as opened:
        archive.addfile(header, _MemberReader(opened, member.name))


@contextlib.contextmanager
def _new_file(target: Path) -> Generator[IO[bytes]]:
    """Create a private file that gets its name when it is complete and on disk."""
    _check_new(target)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}{UNFINISHED_SUFFIX}")
    try:
        with os.fdopen(os.open(unfinished, _NEW, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _check_new(target)  # another backup may have been quicker
        unfinished.rename(target)
        sync_directory(target.parent)
    except OSError as error:
        raise OperatorError(f"cannot write {target}: {system_reason(error)}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _check_new(target: Path) -> None:
    if target.exists():
        raise OperatorError(f"cannot write {target}: it exists, and a backup is never overwritten")


@contextlib.contextmanager
def _translate_archive_errors(file: Path) -> Generator[None]:
    try:
        yield
    except (zstandard.ZstdError, tarfile.TarError, EOFError) as error:
        raise OperatorError(
            f"{file} is not a backup, or it is damaged or cut off: {error}"
        ) from error
    except OSError as error:
        is_other = error.filename is not None and Path(error.filename) != file
        member = f"{error.filename}: " if is_other else ""
        reason = system_reason(error)
        raise OperatorError(f"cannot restore {file}: {member}{reason}") from error


def _read_manifest(archive: tarfile.TarFile, file: Path) -> BackupManifest:
    first = archive.next()
    opened = archive.extractfile(first) if first and first.name == _MANIFEST else None
    if opened is None:
        raise OperatorError(f"{file} is not a backup of Headrace")
    try:
        manifest = msgspec.json.decode(opened.read(), type=BackupManifest)
    except msgspec.MsgspecError as error:
        raise OperatorError(f"cannot decode the manifest of {file}: {error}") from error
    if manifest.format > newest_format():
        raise OperatorError(
            f"{file} was made by Headrace {manifest.written_by} in format {manifest.format}; "
            f"this is Headrace {__version__}, which supports formats up to {newest_format()}: "
            "use the newer version"
        )
    return manifest


def _extract(
    archive: tarfile.TarFile, file: Path, into: Path, manifest: BackupManifest, progress: Progress
) -> None:
    done, names = 0, set[str]()
    while (member := archive.next()) is not None and member.name != _END:
        if member.islnk() or member.name in names:
            raise tarfile.ReadError(f"{member.name} repeats another member")
        archive.extract(member, into, filter="data")
        names.add(member.name)
        done += member.size
        progress(done, manifest.bytes)
    if member is None or len(names) != manifest.files:
        raise OperatorError(
            f"{file} is cut off: it contains {len(names)} of {manifest.files} files"
        )
