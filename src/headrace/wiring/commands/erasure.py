"""Erases rows by a command, whether the service runs or not."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from headrace.adapters.data_dir.lock import is_locked
from headrace.adapters.engine.ipc.rows_client import EngineErasureClient
from headrace.adapters.erasures.erasure_set import read_erasure_set, write_erasure_set
from headrace.adapters.erasures.file_erasures import FileErasures
from headrace.base.clock import SystemClock
from headrace.base.errors import HeadraceError, OperatorError, StoreUnavailable
from headrace.base.settings import Settings
from headrace.erasure import machines
from headrace.model.erasure import WHOLE_WEBSITE, ErasureRequest
from headrace.ports.rows.erasure import Erasure
from headrace.wiring.commands.engine_access import EngineRuntime, connect_engine, find_engine
from headrace.wiring.data import data_dir_paths, migrate_data_dir_if_idle, require_data
from headrace.wiring.shared import open_configured_directory

_POLL_S: Final = 0.2

DELETION_NOTICE_S: Final = 5.0
"""So long after a website was deleted, workers may still accept its events."""

ShowErasure = Callable[[Erasure], None]
"""Called with the state of an erasure each time that it was read."""


def erase(
    settings: Settings, request: ErasureRequest, *, waits: bool, show: ShowErasure
) -> Erasure:
    """Erase rows; return when the erasure is done, or when answers are right unless it `waits`.

    Without a service the command also ends the erasures that were pending, before it returns: it
    can remove replaced parts at once, and a service only after minutes. Raises `OperatorError`. An
    erasure that has begun goes on in the service.
    """
    _require_current_data(settings)
    _check_website(settings, request)
    with find_engine(settings, "headrace erase") as runtime:
        if WHOLE_WEBSITE in request.selectors and not runtime.is_own:
            time.sleep(DELETION_NOTICE_S)
        return asyncio.run(_erase(settings, runtime, request, waits=waits, show=show))


def erasures_of(settings: Settings) -> FileErasures:
    """Return the erasures of the configured data directory."""
    return FileErasures(data_dir_paths(settings).erasures)


def listed_erasures(settings: Settings) -> list[Erasure]:
    """Return all erasures, newest first. Raises `OperatorError`."""
    _require_current_data(settings)
    try:
        return erasures_of(settings).all()[::-1]
    except StoreUnavailable as error:
        raise OperatorError(str(error)) from error


def export_erasures_to(settings: Settings, file: Path) -> int:
    """Write all erasures to a file; return their number. Raises `OperatorError`."""
    _require_current_data(settings)
    found = read_erasure_set(data_dir_paths(settings).root)
    write_erasure_set(found, file)
    return len(found.erasures)


def forget_machine(settings: Settings, machine_id: str, *, by: str) -> None:
    """Note for somebody that a machine of the shared directory is gone. Raises `OperatorError`."""
    _require_current_data(settings)
    directory = open_configured_directory(settings, SystemClock())
    try:
        shared = directory.acting_as(by).shared_erasures
        machines.forget_machine(shared, machine_id, clock=SystemClock())
    finally:
        directory.close()


async def _erase(
    settings: Settings,
    runtime: EngineRuntime,
    request: ErasureRequest,
    *,
    waits: bool,
    show: ShowErasure,
) -> Erasure:
    try:
        async with connect_engine(settings, runtime) as engine:
            erasure = await EngineErasureClient(engine).begin(request)
            if request.dry_run:
                return erasure
            erasures = erasures_of(settings)
            condition = _is_done if waits else _is_clean
            is_running = partial(_is_running, runtime, data_dir_paths(settings).root)
            erasure = await _until(condition, erasures, erasure, is_running, show)
            if waits and runtime.is_own:
                await _until_none_is_left(erasures)
            return erasure
    except OperatorError:
        raise
    except HeadraceError as error:
        raise OperatorError(f"cannot erase: {error}") from error


def _is_clean(erasure: Erasure) -> bool:
    return bool(erasure.answers_clean_ms)


def _is_done(erasure: Erasure) -> bool:
    return erasure.is_done


async def _until(
    condition: Callable[[Erasure], bool],
    erasures: FileErasures,
    erasure: Erasure,
    is_engine_running: Callable[[], bool],
    show: ShowErasure,
) -> Erasure:
    """Wait until a condition holds. Raises `OperatorError` where the service stops before."""
    is_running = True
    while not condition(erasure):
        if not is_running:
            raise OperatorError(
                f"the service has stopped; the erasure {erasure.id} goes on when it starts again, "
                "and `headrace erasures list` shows its state"
            )
        show(erasure)
        await asyncio.sleep(_POLL_S)
        is_running = is_engine_running()
        current = await asyncio.to_thread(erasures.get, erasure.id)
        erasure = current or erasure
    return erasure


def _is_running(runtime: EngineRuntime, root: Path) -> bool:
    """Return whether the owner of the engine runs: one that was killed has left its directory."""
    return runtime.directory.is_dir() and is_locked(root)


async def _until_none_is_left(erasures: FileErasures) -> None:
    pending = await asyncio.to_thread(_pending_here, erasures)
    while pending:
        await asyncio.sleep(_POLL_S)
        pending = await asyncio.to_thread(_pending_here, erasures)


def _pending_here(erasures: FileErasures) -> list[Erasure]:
    """Return all that are not done but those that wait for other machines: no plan is here."""
    return [one for one in erasures.all() if not one.is_done and one.plan is not None]


def check_website_exists(settings: Settings, website_id: str) -> None:
    """Raise `OperatorError` for an unknown website, or a directory without data."""
    _require_current_data(settings)
    _require_website(settings, website_id)


def _require_website(settings: Settings, website_id: str) -> None:
    if not _exists(settings, website_id):
        raise OperatorError(f"there is no website {website_id}")


def _require_current_data(settings: Settings) -> None:
    """Raise `OperatorError` for a directory without data, or of a newer version."""
    require_data(settings)
    migrate_data_dir_if_idle(settings)


def _check_website(settings: Settings, request: ErasureRequest) -> None:
    """Check that the website exists; one that is erased as a whole must have been deleted."""
    if WHOLE_WEBSITE not in request.selectors:
        _require_website(settings, request.website_id)
    elif _exists(settings, request.website_id):
        raise OperatorError(
            f"the website {request.website_id} exists: delete it with its rows by "
            f"`headrace website delete {request.website_id} --erase`"
        )


def _exists(settings: Settings, website_id: str) -> bool:
    directory = open_configured_directory(settings, SystemClock())
    try:
        return website_id in {website.id for website in directory.websites()}
    finally:
        directory.close()
