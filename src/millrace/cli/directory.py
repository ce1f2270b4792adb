"""The directory of websites and keys for commands, whether the service runs or not."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from millrace.base.clock import Clock, SystemClock
from millrace.base.settings import Settings, data_path, load_settings
from millrace.cli.private_directory import make_private_directory
from millrace.ports.directory import Directory
from millrace.wiring.data import check_data
from millrace.wiring.directory import open_directory_of, shares_directory

Listed = TypeVar("Listed", bound=Sequence[object])


@contextlib.contextmanager
def opened_directory(settings: Settings, clock: Clock) -> Generator[Directory]:
    """Open the directory that the settings name, made where it is missing.

    One that is shared is opened from anywhere; no data directory is needed for it.
    """
    if not shares_directory(settings):
        make_private_directory(data_path(settings))
        check_data(settings)
    directory = open_directory_of(settings, clock)
    try:
        yield directory
    finally:
        directory.close()


def directory_of(data: str | None) -> contextlib.AbstractContextManager[Directory]:
    """Open the directory of a command's `--data`, as `opened_directory` does."""
    return opened_directory(load_settings({"data": data}), SystemClock())


def list_from_directory(
    settings: Settings, read: Callable[[Directory], Listed]
) -> Listed | tuple[()]:
    """Return what a directory lists; nothing where there is none yet: looking does not make it."""
    if not shares_directory(settings) and not data_path(settings).exists():
        return ()
    with opened_directory(settings, SystemClock()) as directory:
        return read(directory)


def place_of(settings: Settings) -> str:
    """Name where was looked, so that a path with a typing error is seen."""
    return "the shared directory" if shares_directory(settings) else settings.data
