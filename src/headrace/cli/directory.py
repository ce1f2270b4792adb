"""The directory of websites and keys for commands, whether the service runs or not."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from headrace.base.clock import Clock, SystemClock
from headrace.base.settings import Settings, data_path, load_settings
from headrace.cli.options import make_private_directory
from headrace.ports.directory import Directory
from headrace.wiring.data import data_dir_paths, migrate_data_dir_if_idle, require_data
from headrace.wiring.shared import has_external_directory, open_configured_directory

Listed = TypeVar("Listed", bound=Sequence[object])


@contextlib.contextmanager
def opened_directory(settings: Settings, clock: Clock) -> Generator[Directory]:
    """Open the directory that the settings name, made where it is missing.

    One that is shared is opened from anywhere; no data directory is needed for it.
    """
    if not has_external_directory(settings):
        make_private_directory(data_path(settings))
        migrate_data_dir_if_idle(settings)
    directory = open_configured_directory(settings, clock)
    try:
        yield directory
    finally:
        directory.close()


@contextlib.contextmanager
def directory_of(data: str | None, *, create_if_missing: bool) -> Generator[Directory]:
    """Open the directory of a command's `--data`, as `opened_directory` does.

    Raises `OperatorError` where nothing is kept and it may not be new: a command that names what is
    there already has been given the wrong path, and should leave nothing behind.
    """
    settings = load_settings({"data_dir": data})
    if not create_if_missing and not has_external_directory(settings):
        require_data(settings)
    with opened_directory(settings, SystemClock()) as directory:
        yield directory


def list_from_directory(
    settings: Settings, read: Callable[[Directory], Listed]
) -> Listed | tuple[()]:
    """Return what a directory lists; nothing where there is none yet: looking does not make it."""
    if not has_external_directory(settings) and not _can_have_data(settings):
        return ()
    with opened_directory(settings, SystemClock()) as directory:
        return read(directory)


def _can_have_data(settings: Settings) -> bool:
    """Tell whether to look: also at what is no directory at all, which is then refused."""
    paths = data_dir_paths(settings)
    return paths.has_data or paths.root.is_file()


def directory_label(settings: Settings) -> str:
    """Name where was looked, so that a path with a typing error is seen."""
    return "the shared directory" if has_external_directory(settings) else settings.data_dir
