"""What erasures within the engine process are made of."""

from collections.abc import Callable

from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.engine.erasures import FOLLOW_S, EngineErasures, ExcludeImports
from headrace.adapters.engine.live_tail import LiveTail
from headrace.adapters.engine.load_loop import LoadLoop
from headrace.adapters.erasures.file_erasures import FileErasures, names_in, new_erasure_id
from headrace.adapters.event_log.segment_rewriter import SegmentRewriter
from headrace.adapters.quarantine.erasable_entries import ErasableQuarantine
from headrace.adapters.quarantine.requeue_lock import requeue_locked
from headrace.adapters.query_scheduler.versions import DataVersions
from headrace.adapters.sqlite.erasable_replies import SqliteErasableReplies
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.logs import get_logger
from headrace.base.settings import Settings
from headrace.erasure.files import ErasableFiles, Leftovers
from headrace.erasure.machines import ErasingMachines, OneMachine
from headrace.erasure.planning import ErasurePlanner
from headrace.erasure.service import ErasureService
from headrace.ports.rows.deletion import RowDeleter
from headrace.ports.rows.erasure import ErasableReplies, PartLifetimes, RowFinder
from headrace.wiring.audit import EngineErasureAudit
from headrace.wiring.directory_file import has_external_directory
from headrace.wiring.server_urls import read_server_url
from headrace.wiring.shared_erasures import DirectoryErasures
from headrace.wiring.store_address import clickhouse_address, store_dialect


def engine_erasures(
    settings: Settings,
    paths: DataDirPaths,
    *,
    machine_id: str | None,
    load_loop: LoadLoop,
    exclude_imports: ExcludeImports,
    finder: RowFinder,
    deleter: RowDeleter,
    lifetimes: PartLifetimes,
    versions: DataVersions | None,
    live: LiveTail,
) -> EngineErasures[Leftovers]:
    """Return what runs erasures. Without `versions` nothing caches results.

    `finder` and `deleter` are its own: they are closed with it. Without `machine_id` other machines
    are neither told nor waited for. Raises `OperatorError` where an erasure cannot be read: nobody
    knows what it erases then.
    """
    erasures = _readable_erasures(paths)
    entries = ErasableQuarantine(paths.quarantine)
    steps = ErasureService(
        erasures=erasures,
        planner=ErasurePlanner(finder=finder, entries=entries, dialect=store_dialect(settings)),
        deleter=deleter,
        entries=entries,
        files=ErasableFiles(
            rewriter=SegmentRewriter(paths.log),
            replies=_erasable_replies(settings, paths),
            finder=finder,
            lifetimes=lifetimes,
            snapshots=lambda: names_in(paths.snapshots),
            damaged_files=lambda: len(names_in(paths.damaged)),
            has_unused_store=lambda: (
                clickhouse_address(settings) is not None and paths.store.exists()
            ),
        ),
        audit=EngineErasureAudit(settings),
        new_id=new_erasure_id,
        clock=SystemClock(),
    )
    machines = _erasing_machines(settings, erasures, machine_id)
    return EngineErasures(
        steps,
        machines=machines or OneMachine(),
        load_loop=load_loop,
        exclude_imports=exclude_imports,
        blocking_requeue=lambda: requeue_locked(paths),
        forget_results=_result_dropper(versions),
        forget_items=live.forget,
        log=get_logger(),
        follow_s=None if machines is None else FOLLOW_S,
    )


def _readable_erasures(paths: DataDirPaths) -> FileErasures:
    erasures = FileErasures(paths.erasures)
    try:
        erasures.all()
    except StoreUnavailable as error:
        raise OperatorError(f"{error}; restore it from a backup") from error
    return erasures


def _erasing_machines(
    settings: Settings, erasures: FileErasures, machine_id: str | None
) -> ErasingMachines | None:
    """Return how this machine erases with the others; None where it has nothing to do with any."""
    if machine_id is None or not has_external_directory(settings):
        return None
    clock = SystemClock()
    shared = DirectoryErasures(settings, clock)
    return ErasingMachines(shared, erasures, machine_id=machine_id, clock=clock)


def _result_dropper(versions: DataVersions | None) -> Callable[[str], None]:
    def drop_results(website_id: str) -> None:
        if versions is not None:
            with versions.rows_changing((website_id,)):
                pass  # every cached result has another version now

    return drop_results


def _erasable_replies(settings: Settings, paths: DataDirPaths) -> ErasableReplies:
    url = read_server_url(settings, "valkey_url")
    if not url:
        return SqliteErasableReplies(paths.idempotency)
    # The client takes 0.2 s and 10 MiB to import.
    from headrace.adapters.valkey.client import ValkeyClient  # noqa: PLC0415
    from headrace.adapters.valkey.erasable_replies import ValkeyErasableReplies  # noqa: PLC0415

    return ValkeyErasableReplies(ValkeyClient(url))
