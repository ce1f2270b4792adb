"""The log on ext4 without a journal, which orders no two blocks of metadata.

An image is copied before and after one more append. A crash image has every block of the second
copy but one, which a disk may write last. `e2fsck` runs on it as it does after a power cut, and all
records that were acknowledged before the append must be there.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.powercut.file_systems import FILE_SYSTEMS
from headrace.adapters.event_log import segment_files
from headrace.adapters.event_log.file_ops import FileOps
from testing.event_logs import open_log, payloads_of
from tests.e2e.durability.disks.images import mounted

BLOCK = 4096
WITHOUT_JOURNAL = FILE_SYSTEMS["ext4-without-journal"]
FILE_SYSTEM = WITHOUT_JOURNAL._replace(make=(*WITHOUT_JOURNAL.make, "-b", str(BLOCK)))
MISSING = FILE_SYSTEM.missing()
IMAGE_BYTES = 128 * 1024 * 1024
SEGMENT_BYTES = 1024 * 1024
FRAGMENTS, APPENDS_IN_A_ROW = 16, 3
RECORDS = [bytes([number]) * BLOCK for number in range(1, FRAGMENTS + APPENDS_IN_A_ROW + 1)]
UNACKNOWLEDGED = b"\xff" * BLOCK

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"ext4 without a journal cannot be mounted without {MISSING}"
)


class GrowingFiles(FileOps):
    """Reserves nothing and writes no zeros: every append allocates its own block."""

    def reserve(self, file: int, size: int) -> int:  # noqa: ARG002
        return 0

    def is_zeroing_worthwhile(self, file: int, size: int) -> bool:  # noqa: ARG002
        return False


def copied(image: Path, name: str, mountpoint: Path) -> Path:
    """Copy the image of a mounted file system with all that was written to it."""
    subprocess.run(["sync", "--file-system", str(mountpoint)], check=True)
    return Path(shutil.copyfile(image, image.with_name(name)))


def write_images(image: Path, directory: Path, file_ops: FileOps) -> tuple[Path, Path]:
    """Append records between other files; return the image before and after one more append."""

    async def write(mountpoint: Path) -> tuple[Path, Path]:
        log = open_log(mountpoint / "log", segment_bytes=SEGMENT_BYTES, file_ops=file_ops)
        for number, record in enumerate(RECORDS):
            await log.append(record)
            if number < FRAGMENTS:
                write_other_file(mountpoint / f"{number}")
        before = copied(image, "before.img", mountpoint)
        await log.append(UNACKNOWLEDGED)
        after = copied(image, "after.img", mountpoint)
        await log.close()
        return before, after

    with mounted(FILE_SYSTEM, image, directory) as mountpoint:
        return asyncio.run(write(mountpoint))


def write_other_file(path: Path) -> None:
    with path.open("wb") as file:
        file.write(bytes(8 * BLOCK))
        file.flush()
        os.fsync(file.fileno())


def changed_blocks(before: Path, after: Path) -> Iterator[int]:
    """Return where two images differ."""
    with before.open("rb") as old, after.open("rb") as new:
        for offset in range(0, IMAGE_BYTES, BLOCK):
            if old.read(BLOCK) != new.read(BLOCK):
                yield offset


def records_after_cut(before: Path, after: Path, late: int, directory: Path) -> list[bytes]:
    """Return what the log has when every block of an append but one was on the disk."""
    image = Path(shutil.copyfile(after, after.with_name("crash.img")))
    with image.open("r+b") as crash, before.open("rb") as old:
        old.seek(late)
        crash.seek(late)
        crash.write(old.read(BLOCK))
    FILE_SYSTEM.check_device(str(image))
    with mounted(FILE_SYSTEM, image, directory) as mountpoint:
        (mountpoint / "log" / "worker-0" / "durable").unlink(missing_ok=True)
        return payloads_of(mountpoint / "log")


def lost_records(tmp_path: Path, file_ops: FileOps) -> dict[int, list[int]]:
    """Return the numbers of the lost records, by the offset of the block that was late."""
    image, directory = tmp_path / "disk.img", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    FILE_SYSTEM.make_on(image)
    before, after = write_images(image, directory, file_ops)
    lost: dict[int, list[int]] = {}
    for late in changed_blocks(before, after):
        found = records_after_cut(before, after, late, directory)
        lost[late] = [number for number, record in enumerate(RECORDS) if record not in found]
    assert len(lost) > 2
    return lost


@pytest.mark.parametrize(
    "zeroed_bytes", [pytest.param(SEGMENT_BYTES, id="zeros"), pytest.param(1, id="its end")]
)
def test_acknowledged_records_survive_whichever_block_a_disk_writes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zeroed_bytes: int
) -> None:
    """The append overwrites zeros, or makes the file larger."""
    monkeypatch.setattr(segment_files, "_ZEROED_BYTES", zeroed_bytes)
    lost = lost_records(tmp_path, FileOps())
    assert [numbers for numbers in lost.values() if numbers] == []


def test_log_that_grows_without_reserved_space_loses_acknowledged_records(tmp_path: Path) -> None:
    """The test above finds what it looks for."""
    lost = lost_records(tmp_path, GrowingFiles())
    assert [numbers for numbers in lost.values() if numbers] == [[15, 16, 17, 18]]
