"""The directory of websites and keys for commands, whether the service runs or not."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from headrace.base.clock import Clock, SystemClock
from headrace.base.settings import Settings, data_path, load_settings
from headrace.cli.options import make_private_directory
from headrace.ports.directory import Directory
from headrace.wiring.data import check_data, check_there_is_data, places_of
from headrace.wiring.shared import open_directory_of, shares_directory

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


@contextlib.contextmanager
def directory_of(data: str | None, *, may_be_new: bool) -> Generator[Directory]:
    """Open the directory of a command's `--data`, as `opened_directory` does.

    Raises `OperatorError` where nothing is kept and it may not be new: a command that names what is
    there already has been given the wrong path, and should leave nothing behind.
    """
    settings = load_settings({"data": data})
    if not may_be_new and not shares_directory(settings):
        check_there_is_data(settings)
    with opened_directory(settings, SystemClock()) as directory:
        yield directory


def list_from_directory(
    settings: Settings, read: Callable[[Directory], Listed]
) -> Listed | tuple[()]:
    """Return what a directory lists; nothing where there is none yet: looking does not make it."""
    if not shares_directory(settings) and not _may_have_data(settings):
        return ()
    with opened_directory(settings, SystemClock()) as directory:
        return read(directory)


def _may_have_data(settings: Settings) -> bool:
    """Tell whether to look: also at what is no directory at all, which is then refused."""
    places = places_of(settings)
    return places.has_data or places.root.is_file()


def place_of(settings: Settings) -> str:
    """Name where was looked, so that a path with a typing error is seen."""
    return "the shared directory" if shares_directory(settings) else settings.data
