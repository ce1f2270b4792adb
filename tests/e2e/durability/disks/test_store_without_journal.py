"""New parts beside a removed one on ext4 without a journal, whose power is cut.

The store removes the directory of an old part and syncs nothing of that. New parts get its inodes
and are synced, as chDB syncs them. What the kernel has written to the device by then is the crash
image: the old directory is still in it, with names that lead to the new parts. `e2fsck` runs on it
as it does after a power cut.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.powercut.file_systems import FILE_SYSTEMS
from headrace.adapters.data_dir.files import sync_directory
from headrace.adapters.store.chdb.files.write_order import OrderWrites, order_of_writes
from tests.e2e.durability.disks.images import mounted

WITHOUT_JOURNAL = FILE_SYSTEMS["ext4-without-journal"]
INODES = 128
FILE_SYSTEM = WITHOUT_JOURNAL._replace(
    make=(*WITHOUT_JOURNAL.make, "-b", "4096", "-N", str(INODES))
)
MISSING = FILE_SYSTEM.missing()
IMAGE_BYTES = 64 * 1024 * 1024
INODES_OF_A_BLOCK = 16
TABLES, FILES_OF_NEW_PART = 8, 3
FILES_OF_OLD_PART = TABLES * (1 + FILES_OF_NEW_PART)
ATTEMPTS = 3
"""The kernel may write the removal at any time, for reasons of its own."""

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"ext4 without a journal cannot be mounted without {MISSING}"
)


def write_files(directory: Path, count: int) -> None:
    for number in range(count):
        (directory / str(number)).write_bytes(b"content")


def use_all_inodes(directory: Path) -> None:
    with contextlib.suppress(OSError):
        write_files(directory, INODES)


def write_synced_part(directory: Path) -> None:
    """Write a part as chDB does: its files, the directory, its name."""
    unfinished = directory / "tmp_insert_all_2_2_0"
    unfinished.mkdir()
    for number in range(FILES_OF_NEW_PART):
        with (unfinished / f"column{number}.bin").open("wb") as file:
            file.write(b"rows")
            file.flush()
            os.fsync(file.fileno())
    sync_directory(unfinished)
    part = unfinished.rename(directory / "all_2_2_0")
    sync_directory(directory)
    sync_directory(part)


def crash_image(image: Path, find_order: Callable[[Path], OrderWrites]) -> Path:
    """Replace an old part by new ones; return what the device has when they count as stored."""
    with mounted(FILE_SYSTEM, image, image.with_name("disk")) as disk:
        store, others, more = disk / "store", disk / "others", disk / "more"
        old, tables = store / "old" / "all_1_1_0", list(_tables(store))
        for directory in (store, old.parent, old, others, more):
            directory.mkdir()
        write_files(others, INODES_OF_A_BLOCK)  # so that the old part is not beside its files
        write_files(old, FILES_OF_OLD_PART)
        for table in tables:
            table.mkdir()
        use_all_inodes(more)
        subprocess.run(["sync", "--file-system", str(disk)], check=True)
        order_writes = find_order(store)
        shutil.rmtree(old)
        (others / "directory").mkdir()  # takes inode and block of the old part's directory
        for table in tables:
            write_synced_part(table)
        order_writes()
        return Path(shutil.copyfile(image, image.with_name("crash.img")))


def _tables(store: Path) -> Iterator[Path]:
    return (store / f"table{number}" for number in range(TABLES))


def parts_after_cut(tmp_path: Path, find_order: Callable[[Path], OrderWrites]) -> list[list[str]]:
    """Return the files of each new part after a power cut."""
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    FILE_SYSTEM.make_on(image)
    crash = crash_image(image, find_order)
    FILE_SYSTEM.check_device(str(crash))
    with mounted(FILE_SYSTEM, crash, crash.with_name("disk")) as disk:
        return [
            sorted(file.name for file in table.glob("all_2_2_0/*"))
            for table in _tables(disk / "store")
        ]


def has_lost_parts(tmp_path: Path, find_order: Callable[[Path], OrderWrites]) -> bool:
    whole = [f"column{number}.bin" for number in range(FILES_OF_NEW_PART)]
    return any(parts_after_cut(tmp_path, find_order) != [whole] * TABLES for _ in range(ATTEMPTS))


def test_parts_that_count_as_stored_survive_beside_a_removed_one(tmp_path: Path) -> None:
    assert not has_lost_parts(tmp_path, order_of_writes)


def test_parts_are_lost_where_nothing_orders_the_removal_before_them(tmp_path: Path) -> None:
    """The test above finds what it looks for."""
    assert has_lost_parts(tmp_path, lambda _: lambda: None)
