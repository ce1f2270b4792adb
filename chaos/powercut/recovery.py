"""Cuts the power under the service, and starts it on what the disk may have then."""

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, Protocol

from chaos.fault import FaultContext
from chaos.powercut.crash_image import Survival
from chaos.powercut.recording_disk import CutDisk, RecordingDisk, UnmountableImage
from chaos.powercut.recording_image import CutPoint

_FURTHER_IMAGES = (0, 0, 1, 2)  # how many images of one cut are tried before the last, as likely
_MOST_CUTS_IN_RECOVERY = 3
_MOUNT_ATTEMPTS = 10
_LONGEST_RECOVERY_S = 3.0


class Process(Protocol):
    """A process that uses the disk."""

    def kill(self) -> None:
        """Send SIGKILL and return immediately."""
        ...

    def wait(self) -> object:
        """Wait until it has ended."""
        ...


def _nothing() -> None:
    pass


class Aftermath(NamedTuple):
    """What an operator does after a power cut. Each step is repeated on every image.

    Unless the disk `stays_full`, space is made before the first step: that the file which filled it
    in an earlier round was deleted need not be on the disk.
    """

    stays_full: bool = False
    before_start: Callable[[], None] = _nothing
    after_start: Callable[[], None] = _nothing
    after_recovery: Callable[[], None] | None = None


class PowerCut:
    """The power cuts of one fault."""

    def __init__(
        self, context: FaultContext, *, aftermath: Aftermath, again_probability: float = 0.2
    ) -> None:
        if not isinstance(context.disk, RecordingDisk):
            raise TypeError("the power of this disk cannot be cut")
        self._context = context
        self._disk = context.disk
        self._aftermath = aftermath
        self._again_probability = again_probability

    def inject(self, others: Sequence[Process] = ()) -> None:
        """Cut the power, kill the service and other processes, and start the service again.

        The service recovers on every image, and all events are checked; on the last image it is
        only started, and the rounds continue there.
        """
        remains = self._cut(others)
        with self._context.traffic.paused():
            for _ in range(self._context.random.choice(_FURTHER_IMAGES)):
                self._start(remains)
                self._recover()
                self._context.check()
                self._context.service.kill_everything()
                self._disk.unmount()
            self._start(remains)
        remains.discard()
        if self._aftermath.after_recovery is not None:
            self._recover()

    def _start(self, remains: CutDisk) -> None:
        """Start the service on an image. Sometimes the power is cut again meanwhile."""
        self._boot(remains)
        for _ in range(_MOST_CUTS_IN_RECOVERY):
            if self._context.random.random() >= self._again_probability:
                break
            time.sleep(self._context.random.uniform(0, _LONGEST_RECOVERY_S))
            again = self._cut(())
            self._boot(again)
            again.discard()
        self._aftermath.after_start()

    def _boot(self, remains: CutDisk) -> None:
        self._mount(remains)
        self._disk.crash_images += 1
        if not self._aftermath.stays_full:
            self._disk.free_space(self._disk.data)
        self._aftermath.before_start()
        self._context.service.launch()

    def _mount(self, remains: CutDisk) -> None:
        """Mount an image. One from which the file system cannot recover is only counted."""
        random = self._context.random
        for _ in range(_MOUNT_ATTEMPTS):
            try:
                self._disk.boot(remains.make_image(random.choice(self._disk.survivals), random))
            except UnmountableImage:
                self._disk.unmountable_images += 1
            else:
                return
        self._disk.boot(remains.make_image(Survival.ALL, random))

    def _recover(self) -> None:
        self._context.service.wait_for_recovery()
        if self._aftermath.after_recovery is not None:
            self._aftermath.after_recovery()

    def _cut(self, others: Sequence[Process]) -> CutDisk:
        processes = (self._context.service, *others)
        with self._disk.cut_power(*_choose_point(self._context.random)):
            for process in processes:
                process.kill()
        for process in processes:
            process.wait()
        return self._disk.unmount_after_cut()


def _choose_point(random: Random) -> tuple[CutPoint | None, int]:
    """Choose when the power is cut. A flush is the instant with the most to lose."""
    point = random.choice((None, CutPoint.WRITE, CutPoint.FLUSH))
    return point, random.randrange(300 if point is CutPoint.WRITE else 40)
