"""The crash test makes space on a disk that it filled, whatever a power cut left of the filler.

On ext4 without a journal the file may keep its space and lose its name: a check of the file system
puts it into `lost+found`.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from chaos.disk import DiskUnavailable
from chaos.powercut.crash_image import Survival
from chaos.powercut.file_systems import FILE_SYSTEMS
from chaos.powercut.recording_disk import RecordingDisk, recording_disk

FILE_SYSTEM = FILE_SYSTEMS["ext4-without-journal"]
MISSING = FILE_SYSTEM.missing() or ("" if shutil.which("debugfs") else "debugfs")

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"ext4 without a journal cannot lose a name without {MISSING}"
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[RecordingDisk]:
    try:
        with recording_disk(tmp_path, FILE_SYSTEM, ignores_flushes=False) as opened:
            yield opened
    except DiskUnavailable as error:
        pytest.skip(str(error))


def free_bytes(disk: RecordingDisk) -> int:
    found = os.statvfs(disk.data)
    return found.f_bavail * found.f_frsize


def test_space_is_made_although_the_filler_has_lost_its_name(disk: RecordingDisk) -> None:
    before = free_bytes(disk)
    filled = disk.fill()
    disk.sync()
    (filler,) = (path for path in filled.iterdir() if path.is_file())
    with disk.cut_power():
        pass
    random = Random(0)  # noqa: S311 - everything survives, whatever it draws
    image = disk.unmount_after_cut().make_image(Survival.ALL, random)
    unlink = f"unlink /{filler.relative_to(disk.data.parent)}"
    subprocess.run(["debugfs", "-w", "-R", unlink, str(image)], check=True, capture_output=True)
    disk.boot(image)
    assert not filler.exists()
    assert free_bytes(disk) < before / 2

    disk.free_space(filled)

    assert free_bytes(disk) > before * 0.9
