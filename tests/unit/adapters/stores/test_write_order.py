"""A file system without a journal is recognized, and synced as a whole."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.powercut.file_systems import FILE_SYSTEMS
from headrace.adapters.store.chdb.files.write_order import (
    lacks_journal,
    order_of_writes,
    sync_file_system,
)

DEVICE = os.makedev(8, 1)
IMAGE_BYTES = 512 * 1024 * 1024
WITHOUT_JOURNAL = "rw\nbsddf\nnojournal_checksum\nbarrier\ncommit=5\n"
WITH_JOURNAL = "rw\njournal_checksum\nbarrier\ncommit=5\ndata=ordered\n"


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """The kernel's links to its block devices: one is a partition."""
    (tmp_path / "block" / "sda" / "sda1").mkdir(parents=True)
    links = tmp_path / "dev"
    links.mkdir()
    (links / "8:1").symlink_to(tmp_path / "block" / "sda" / "sda1")
    return links


@pytest.mark.parametrize(
    ("mounted", "expected"),
    [
        pytest.param({"sda1": WITHOUT_JOURNAL}, True, id="no journal"),
        pytest.param({"sda1": WITH_JOURNAL}, False, id="a journal of metadata"),
        pytest.param(
            {"sda1": WITH_JOURNAL.replace("ordered", "journal")}, False, id="a journal of data"
        ),
        pytest.param({"sda": WITHOUT_JOURNAL, "sda10": WITHOUT_JOURNAL}, False, id="on others"),
        pytest.param({}, False, id="no such file system"),
    ],
)
def test_journal_is_known_by_its_mode_among_the_options(
    tmp_path: Path, devices: Path, mounted: dict[str, str], expected: bool
) -> None:
    for name, options in mounted.items():
        (tmp_path / "ext4" / name).mkdir(parents=True)
        (tmp_path / "ext4" / name / "options").write_text(options)
    assert lacks_journal(DEVICE, ext4=tmp_path / "ext4", devices=devices) == expected


def test_without_the_files_of_the_kernel_there_is_a_journal(tmp_path: Path) -> None:
    assert not lacks_journal(DEVICE, ext4=tmp_path / "ext4", devices=tmp_path / "dev")


@pytest.fixture(params=list(FILE_SYSTEMS))
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A kind of file system, and a directory where one is mounted."""
    name: str = request.param
    file_system = FILE_SYSTEMS[name]
    if missing := file_system.missing():
        pytest.skip(f"it cannot be mounted without {missing}")
    image, directory = tmp_path / "image", tmp_path / "mounted"
    directory.mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    file_system.make_on(image)
    mount = ["mount", "-t", file_system.type, "-o", "loop", str(image), str(directory)]
    if (done := subprocess.run(mount, check=False, capture_output=True)).returncode != 0:
        pytest.skip(f"this machine forbids to mount: {done.stderr.decode()}")
    yield name, directory
    subprocess.run(["umount", str(directory)], check=True)


def test_a_mounted_file_system_is_recognized_and_synced(mounted: tuple[str, Path]) -> None:
    name, directory = mounted
    order_of_writes(directory)()
    sync_file_system(directory)
    assert lacks_journal(directory.stat().st_dev) == (name == "ext4-without-journal")


def test_every_user_can_recognize_one(mounted: tuple[str, Path]) -> None:
    name, directory = mounted
    program = (
        "import os, sys;"
        "from headrace.adapters.store.chdb.files.write_order import lacks_journal;"
        "os.setuid(65534); print(lacks_journal(int(sys.argv[1])))"
    )
    device = str(directory.stat().st_dev)
    done = subprocess.run(
        [sys.executable, "-c", program, device], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(name == "ext4-without-journal")


def test_what_cannot_be_synced_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_file_system(tmp_path / "missing")
