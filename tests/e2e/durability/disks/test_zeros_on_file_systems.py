"""A log is ahead with zeros on file systems that overwrite in place, and on no others."""

import asyncio
from pathlib import Path

import pytest

from chaos.powercut.file_systems import FILE_SYSTEMS, FileSystem
from testing.event_logs import open_log, segments_of
from tests.e2e.durability.disks.images import mounted

IMAGE_BYTES = 512 * 1024 * 1024
SEGMENT_BYTES = 1024 * 1024
RECORD = b"record"


async def zeros_after_an_append(root: Path) -> int:
    """Return how many zeros a segment has after its only record."""
    log = open_log(root, segment_bytes=SEGMENT_BYTES)
    await log.append(RECORD)
    (segment,) = segments_of(root)
    content = segment.read_bytes()
    await log.close()
    assert segment.read_bytes() == content.rstrip(b"\0")
    return len(content) - len(content.rstrip(b"\0"))


@pytest.mark.parametrize(
    ("name", "zeros"),
    [("ext4", 256 * 1024), ("ext4-without-journal", 256 * 1024), ("xfs", 256 * 1024), ("btrfs", 0)],
)
def test_zeros_are_written_where_they_are_overwritten(
    name: str, zeros: int, tmp_path: Path
) -> None:
    file_system: FileSystem = FILE_SYSTEMS[name]
    if missing := file_system.missing():
        pytest.skip(f"{name} cannot be mounted without {missing}")
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    file_system.make_on(image)
    with mounted(file_system, image, tmp_path / "disk") as directory:
        assert asyncio.run(zeros_after_an_append(directory / "log")) == zeros
