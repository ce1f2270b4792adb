"""Opens the directory of websites and keys for commands, whether the service runs or not."""

import contextlib
import getpass
import os
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from headrace.base.clock import Clock, SystemClock
from headrace.base.settings import Settings, load_settings
from headrace.ports.directory import Directory
from headrace.wiring.data import (
    create_data_dir,
    data_dir_paths,
    migrate_data_dir_if_idle,
    require_data,
)
from headrace.wiring.directory_file import check_database_of_service, has_external_directory
from headrace.wiring.shared import open_configured_directory

Listed = TypeVar("Listed", bound=Sequence[object])


@contextlib.contextmanager
def opened_directory(settings: Settings, clock: Clock) -> Generator[Directory]:
    """Open the configured directory, and create it if it is missing.

    A directory in a database server needs no data directory. Raises `OperatorError`.
    """
    if has_external_directory(settings):
        check_database_of_service(settings)
    else:
        create_data_dir(settings)
        migrate_data_dir_if_idle(settings)
    directory = open_configured_directory(settings, clock)
    try:
        yield directory.acting_as(operator_name())
    finally:
        directory.close()


@contextlib.contextmanager
def directory_of(data: str | None, *, create_if_missing: bool) -> Generator[Directory]:
    """Open the directory of a command's `--data`, as `opened_directory`.

    Unless `create_if_missing`, raises `OperatorError` for a data directory without data: a command
    that names an existing object was given the wrong path and must not create a directory there.
    """
    settings = load_settings({"data_dir": data})
    if not create_if_missing and not has_external_directory(settings):
        require_data(settings)
    with opened_directory(settings, SystemClock()) as directory:
        yield directory


def list_from_directory(
    settings: Settings, read: Callable[[Directory], Listed]
) -> Listed | tuple[()]:
    """Return a list from the directory, or () if it does not exist. Creates nothing."""
    if not has_external_directory(settings) and not _can_have_data(settings):
        return ()
    with opened_directory(settings, SystemClock()) as directory:
        return read(directory)


def operator_name() -> str:
    """Return who uses the command line, for the audit log and for receipts."""
    try:
        return f"cli {getpass.getuser()}"
    except (KeyError, OSError):  # a container may run as a number without a name
        return f"cli {os.getuid()}"


def _can_have_data(settings: Settings) -> bool:
    """Return whether to open the directory. Opening a path that is a file reports the error."""
    paths = data_dir_paths(settings)
    return paths.has_data or paths.root.is_file()


def directory_label(settings: Settings) -> str:
    """Return a name of the directory for messages, so that a mistyped path is noticed."""
    return "the shared directory" if has_external_directory(settings) else settings.data_dir
