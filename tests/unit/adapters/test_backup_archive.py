"""A backup file contains exactly its snapshot, or is refused with the reason."""

import os
import shutil
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import __version__
from headrace.adapters.backup.archive import BackupManifest, read_archive, write_archive
from headrace.adapters.backup.snapshots import Snapshot, walk_entries
from headrace.adapters.data_dir.format import ensure_format_marker, newest_format
from headrace.base.errors import OperatorError
from testing.event_logs import append

MADE = "2026-11-23T10:00:00.000Z"
NOT_DURABLE = b"an append that nobody was told of"


class DiskUsage(NamedTuple):
    """What `shutil.disk_usage` returns, in bytes."""

    total: int
    used: int
    free: int


def ignore_progress(_done: int, _total: int) -> None:
    """Report nothing."""


def contents(root: Path) -> Mapping[str, bytes | str | None]:
    """Return the bytes of each file, the target of each link and None for each directory."""
    return {
        str(path.relative_to(root)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in walk_entries(root)
    }


def snapshot_of(root: Path, unreadable: tuple[str, ...] = ()) -> Snapshot:
    return Snapshot(root, len(list(walk_entries(root))), unreadable)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with a log that is written on, a link, an empty directory and an empty file."""
    root = tmp_path / "data"
    root.mkdir()
    ensure_format_marker(root)
    append(root / "log", b"acknowledged", segment_bytes=1 << 20)
    (root / "store" / "data").mkdir(parents=True)
    (root / "store" / "data" / "rows.bin").write_bytes(os.urandom(5000))
    (root / "store" / "link").symlink_to("data")
    (root / "quarantine").mkdir()
    (root / "empty").touch()
    return root


@pytest.fixture
def backup(data: Path, tmp_path: Path) -> Path:
    target = tmp_path / "backup.tar.zst"
    write_archive(snapshot_of(data), target, made=MADE, progress=ignore_progress)
    return target


def test_restored_tree_is_the_snapshot_up_to_the_durable_end_of_its_log(
    data: Path, tmp_path: Path
) -> None:
    durable = contents(data)
    (segment,) = data.glob("log/worker-0/*.segment")
    with segment.open("ab") as file:
        file.write(NOT_DURABLE)
    target, into = tmp_path / "backup.tar.zst", tmp_path / "restored"
    into.mkdir()
    written, read = list[int](), list[int]()
    manifest = write_archive(
        snapshot_of(data, ("worker-1",)),
        target,
        made=MADE,
        progress=lambda done, _total: written.append(done),
    )
    size = sum(len(content) for content in durable.values() if isinstance(content, bytes))
    assert manifest == BackupManifest(
        format=newest_format(),
        written_by=__version__,
        made=MADE,
        files=len(durable),
        bytes=size,
        unreadable_logs=("worker-1",),
    )
    assert read_archive(target, into, progress=lambda done, _total: read.append(done)) == manifest
    assert contents(into) == durable
    assert written[-1] == read[-1] == size
    assert target.stat().st_mode & 0o777 == 0o600


def test_each_name_of_a_file_with_several_is_restored(data: Path, tmp_path: Path) -> None:
    os.link(data / "store" / "data" / "rows.bin", data / "store" / "set-aside.bin")
    target, into = tmp_path / "backup.tar.zst", tmp_path / "restored"
    into.mkdir()

    write_archive(snapshot_of(data), target, made=MADE, progress=ignore_progress)
    read_archive(target, into, progress=ignore_progress)

    assert contents(into) == contents(data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_backup_that_is_cut_off_anywhere_is_refused(
    backup: Path, tmp_path: Path, share: float
) -> None:
    whole = backup.read_bytes()
    cut = tmp_path / "cut.tar.zst"
    cut.write_bytes(whole[: int(len(whole) * share)])
    into = tmp_path / f"into-{share.hex()}"
    into.mkdir(exist_ok=True)
    with pytest.raises(OperatorError) as refused:
        read_archive(cut, into, progress=ignore_progress)
    assert "cut off" in str(refused.value) or "is not a backup" in str(refused.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_backup_with_a_flipped_bit_is_refused_or_restored_whole(
    backup: Path, data: Path, tmp_path: Path, share: float, bit: int
) -> None:
    altered = bytearray(backup.read_bytes())
    altered[int(len(altered) * share)] ^= 1 << bit
    damaged = tmp_path / "damaged.tar.zst"
    damaged.write_bytes(altered)
    into = tmp_path / f"into-{share.hex()}-{bit}"
    into.mkdir(exist_ok=True)
    try:
        read_archive(damaged, into, progress=ignore_progress)
    except OperatorError:
        return
    assert contents(into) == contents(data)  # a bit of the frame's header that says nothing


def test_existing_file_is_never_overwritten(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar.zst"
    target.write_bytes(b"mine")
    with pytest.raises(OperatorError, match="it exists, and a backup is never overwritten"):
        write_archive(snapshot_of(data), target, made=MADE, progress=ignore_progress)
    assert target.read_bytes() == b"mine"


def test_file_that_another_backup_made_meanwhile_is_not_overwritten(
    data: Path, tmp_path: Path
) -> None:
    target = tmp_path / "backup.tar.zst"

    def finish_other(_done: int, _total: int) -> None:
        target.write_bytes(b"of the other")

    with pytest.raises(OperatorError, match="it exists, and a backup is never overwritten"):
        write_archive(snapshot_of(data), target, made=MADE, progress=finish_other)
    assert target.read_bytes() == b"of the other"
    assert {path.name for path in tmp_path.iterdir()} == {"data", "backup.tar.zst"}


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.LNKTYPE], ids=["file", "hard link"])
def test_member_that_repeats_another_is_refused(backup: Path, tmp_path: Path, kind: bytes) -> None:
    content = zstandard.ZstdDecompressor().decompressobj().decompress(backup.read_bytes())
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        replaced = archive.getmember("quarantine").offset
    other = tarfile.TarInfo("empty")
    other.type, other.linkname = kind, "missing"
    altered = bytearray(content)
    altered[replaced : replaced + tarfile.BLOCKSIZE] = other.tobuf(tarfile.PAX_FORMAT)[
        : tarfile.BLOCKSIZE
    ]
    file, into = tmp_path / "altered.tar.zst", tmp_path / "into"
    file.write_bytes(zstandard.ZstdCompressor(write_checksum=True).compress(bytes(altered)))
    into.mkdir()
    with pytest.raises(OperatorError, match=r"damaged or cut off: empty repeats another member$"):
        read_archive(file, into, progress=ignore_progress)


def test_snapshot_that_is_being_removed_leaves_no_file(data: Path, tmp_path: Path) -> None:
    snapshot = snapshot_of(data)
    (data / "empty").unlink()
    with pytest.raises(OperatorError, match="the engine stopped during the backup"):
        write_archive(snapshot, tmp_path / "backup.tar.zst", made=MADE, progress=ignore_progress)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_data_larger_than_the_free_space_is_refused_before_anything_is_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nearly_full(_path: Path) -> DiskUsage:
        return DiskUsage(20, 10, 10)

    monkeypatch.setattr(shutil, "disk_usage", nearly_full)
    with pytest.raises(OperatorError, match=r"up to \d+ bytes are needed and 10 are free"):
        write_archive(
            snapshot_of(data), tmp_path / "backup.tar.zst", made=MADE, progress=ignore_progress
        )
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_backup_of_a_newer_format_names_both_versions(data: Path, tmp_path: Path) -> None:
    target, newer = tmp_path / "backup.tar.zst", newest_format() + 1
    marker = {"format": newer, "written_by": "99.0"}
    (data / "headrace.json").write_bytes(msgspec.json.encode(marker))
    write_archive(snapshot_of(data), target, made=MADE, progress=ignore_progress)
    (tmp_path / "into").mkdir()
    with pytest.raises(OperatorError, match=f"in format {newer}; this is Headrace {__version__}"):
        read_archive(target, tmp_path / "into", progress=ignore_progress)
    assert list((tmp_path / "into").iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"text", zstandard.compress(b"no archive"), zstandard.compress(b"\0" * 20_480)]
)
def test_other_files_are_no_backups(tmp_path: Path, content: bytes) -> None:
    file, into = tmp_path / "file", tmp_path / "into"
    file.write_bytes(content)
    into.mkdir()
    with pytest.raises(OperatorError, match="is not a backup"):
        read_archive(file, into, progress=ignore_progress)
    assert list(into.iterdir()) == []


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"missing: no such file or directory$"):
        read_archive(tmp_path / "missing", tmp_path, progress=ignore_progress)
