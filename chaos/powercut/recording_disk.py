"""A data directory on a file system whose power can be cut."""

import select
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import msgspec

from chaos.disk import (
    ORDINARY_CAPABILITIES,
    Capability,
    DataDisk,
    DiskFailed,
    DiskUnavailable,
    is_filler,
)
from chaos.powercut.crash_image import Survival, copy_image, make_crash_image
from chaos.powercut.file_systems import FileSystem
from chaos.powercut.fuse import FILE_NAME
from chaos.powercut.leftovers import unmount_leftovers
from chaos.powercut.recording_image import CutPoint, Pending, pending_file

_IMAGE_BYTES = 4 * 1024 * 1024 * 1024  # of which the image's file has what was written
_TIMEOUT_S = 60.0
_NAMELESS_FILES = "lost+found"  # where e2fsck puts them
RECORDING_CAPABILITIES = ORDINARY_CAPABILITIES | {Capability.FULL_DISK, Capability.POWER_CUT}


class UnmountableImage(DiskFailed):
    """The file system cannot recover from a crash image."""


class CutDisk:
    """What a disk had when its power was cut, in `durable` and the record beside it."""

    def __init__(self, durable: Path) -> None:
        self._durable = durable

    def make_image(self, survival: Survival, random: Random) -> Path:
        """Make an image that the disk may have now. There is one at a time."""
        image = self._durable.with_suffix(".crash")
        make_crash_image(self._durable, image, survival=survival, random=random)
        return image

    def discard(self) -> None:
        """Delete the files."""
        self._durable.unlink()
        pending_file(self._durable).unlink()


class RecordingDisk(DataDisk):
    """A file system on a loop device, on a file that the daemon serves.

    `boot` mounts an image, `cut_power` ends what is durable in it, and `unmount` ends its use.
    """

    def __init__(self, work: Path, file_system: FileSystem, *, ignores_flushes: bool) -> None:
        self._mountpoint = work / "disk"
        self._device_directory = work / "device"
        self._file_system = file_system
        self._ignores_flushes = ignores_flushes
        self._booted = work / "booted.img"
        self._current, self._durable = work / "current.img", work / "durable.img"
        self.survivals = (Survival.NONE,) if ignores_flushes else tuple(Survival)
        self._daemon: subprocess.Popen[str] | None = None
        self._loop_device = ""
        self._is_mounted = False
        super().__init__(work, self._mountpoint / "data")

    def make(self) -> None:
        """Make an empty file system and boot from it. Raises `DiskUnavailable`."""
        unmount_leftovers()
        for path in (self._mountpoint, self._device_directory):
            path.mkdir()
        image = self._booted.with_name("new.img")
        with image.open("wb") as file:
            file.truncate(_IMAGE_BYTES)
        try:
            self._file_system.make_on(image)
            self.boot(image)
        except subprocess.CalledProcessError as error:
            raise DiskUnavailable(f"cannot make it: {error.stderr}") from error
        except DiskFailed as error:
            raise DiskUnavailable(str(error)) from error

    def boot(self, image: Path) -> None:
        """Mount an image, which becomes `booted.img`. Raises `UnmountableImage`."""
        image.rename(self._booted)
        for copy in (self._current, self._durable):
            copy_image(self._booted, copy)
        try:
            self._start_daemon()
            self._loop_device = _output(
                "losetup", "--find", "--show", str(self._device_directory / FILE_NAME)
            )
            self._file_system.check_device(self._loop_device)
            _output("mount", "-t", self._file_system.type, self._loop_device, str(self._mountpoint))
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", error)
            self.unmount()
            raise UnmountableImage(f"cannot mount {image.name}: {reason}") from error
        self._is_mounted = True
        if not self.data.exists():
            self.data.mkdir(mode=0o700)
            self.sync()

    def begin_load(self) -> None:
        """Begin to ignore flushes if this disk is to do so, until it is booted again."""
        if self._ignores_flushes:
            self._send("ignore-flushes")

    @contextmanager
    def cut_power(
        self, point: CutPoint | None = None, count: int = 0, *, timeout_s: float = 5.0
    ) -> Generator[Pending]:
        """Cut the power; nothing is written any more until the block ends.

        It is cut before the write or flush that comes after `count` others, or at the end of the
        timeout, or at once where no point is given. The block must kill all processes that use the
        disk, so that none of them acts on a write that returns after it.
        """
        self._send("cut" if point is None else f"cut {point} {count}")
        reply = self._read_line(timeout_s)
        if not reply:
            self._send("cut")
            reply = self._read_line(_TIMEOUT_S)
        self.power_cuts += 1
        try:
            yield msgspec.json.decode(reply, type=Pending)
        finally:
            self._send("resume")

    def free_space(self, filled: Path) -> None:
        """Delete the filler, also where a check of the file system found it without its name."""
        super().free_space(filled)
        for path in (self._mountpoint / _NAMELESS_FILES).glob("*"):
            if is_filler(path):
                path.unlink()

    def unmount(self) -> None:
        """Unmount the file system and end the daemon. Raises `DiskFailed`."""
        if self._is_mounted:
            _unmount(self._mountpoint)
            self._is_mounted = False
        if self._loop_device:
            self._file_system.forget_device(self._loop_device)
            _output("losetup", "--detach", self._loop_device)
            self._loop_device = ""
        if self._daemon is not None:
            self._stop_daemon(self._daemon)
            self._daemon = None

    def unmount_after_cut(self) -> "CutDisk":
        """Unmount the file system, and return what the disk had when its power was cut."""
        self.unmount()
        remains = self._durable.with_name(f"cut-{self.power_cuts}.img")
        self._durable.rename(remains)
        pending_file(self._durable).rename(pending_file(remains))
        return CutDisk(remains)

    def keep(self, kept: Path) -> None:
        """Copy the data directory, and the image with which the file system was mounted last."""
        if self._is_mounted:
            super().keep(kept)
        copy_image(self._booted, kept.with_name("kept.img"))

    def close(self) -> None:
        """End everything, whatever state it is in."""
        with suppress(DiskFailed, subprocess.CalledProcessError):
            self.unmount()
        for path in (self._mountpoint, self._device_directory):
            if path.is_mount():
                subprocess.run(["umount", "--lazy", str(path)], check=False)
        for image in (self._booted, self._current, self._durable):
            image.unlink(missing_ok=True)

    def _start_daemon(self) -> None:
        command = [sys.executable, "-m", "chaos.powercut.daemon"]
        command += ["--mount", str(self._device_directory)]
        command += ["--current", str(self._current), "--durable", str(self._durable)]
        self._daemon = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            start_new_session=True,  # so that Ctrl-C does not take the disk from the service
        )
        if self._read_line(_TIMEOUT_S) != "ready\n":
            raise OSError("the daemon does not mount; is FUSE permitted here?")

    def _stop_daemon(self, daemon: subprocess.Popen[str]) -> None:
        _unmount(self._device_directory)
        daemon.wait(_TIMEOUT_S)
        for pipe in (daemon.stdin, daemon.stdout):
            if pipe is not None:
                pipe.close()

    def _send(self, command: str) -> None:
        if self._daemon is None or self._daemon.stdin is None:
            raise DiskFailed("the disk is not mounted")
        self._daemon.stdin.write(f"{command}\n")
        self._daemon.stdin.flush()

    def _read_line(self, timeout_s: float) -> str:
        """Return a line of the daemon, or an empty string after the timeout."""
        if self._daemon is None or self._daemon.stdout is None:
            raise DiskFailed("the disk is not mounted")
        readable, _, _ = select.select([self._daemon.stdout], [], [], timeout_s)
        return self._daemon.stdout.readline() if readable else ""


def _unmount(path: Path) -> None:
    """Unmount it. A killed process may use it for a while longer, and so may who looks at loops."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        done = subprocess.run(["umount", str(path)], check=False, capture_output=True, text=True)
        if done.returncode == 0:
            return
        if time.monotonic() > deadline:
            raise DiskFailed(f"cannot unmount: {done.stderr}")
        time.sleep(0.05)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def recording_disk(
    work: Path, file_system: FileSystem, *, ignores_flushes: bool
) -> Generator[RecordingDisk]:
    """Make a disk, and unmount it on exit. Raises `DiskUnavailable`."""
    disk = RecordingDisk(work, file_system, ignores_flushes=ignores_flushes)
    try:
        disk.make()
        yield disk
    finally:
        disk.close()
