"""Opens the state that machines share in PostgreSQL and Valkey, or this machine's own.

Without several machines that is SQLite files and the engine process. A module that imports a client
library is imported where it is used: one machine has none of them installed.
"""

import hashlib
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.adapters.engine.ipc.limiter_client import EngineLimiter
from headrace.adapters.engine.rate_limiter import WorkerLimiter
from headrace.adapters.sqlite.idempotency import SqliteIdempotencyStore
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import Clock
from headrace.base.settings import Settings, worker_count
from headrace.ingest.receive.visitor_salts import DailySalts
from headrace.ports.dedup_claims import DedupClaims
from headrace.ports.idempotency import IdempotencyStore
from headrace.ports.rate_limiter import RateLimiters, calls_per_minute
from headrace.wiring.data import data_dir_paths
from headrace.wiring.directory_file import check_directory_file
from headrace.wiring.server_urls import read_server_url

if TYPE_CHECKING:
    from headrace.adapters.directory.sql_directory import SqlDirectory

_MACHINE_ID = Path("/etc/machine-id")


class SharedState(Struct, frozen=True):
    """The stores of a worker. `readiness` has a check for each server that they depend on."""

    idempotency_store: IdempotencyStore
    limiters: RateLimiters
    readiness: Mapping[str, Callable[[], Awaitable[bool]]]


async def open_shared_state(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    worker: str,
    engine: EngineConnections,
    salts: DailySalts,
    clock: Clock,
) -> SharedState:
    """Open the configured stores; `stack` closes them. Raises `OperatorError`."""
    url = read_server_url(settings, "valkey_url")
    paths = data_dir_paths(settings)
    limits = calls_per_minute(settings.query_rate_limit)
    if not url:
        local_store = SqliteIdempotencyStore.open(paths.idempotency, owner=worker, clock=clock)
        stack.push_async_callback(local_store.close)
        workers = worker_count(settings)
        limiters = {
            call: WorkerLimiter(EngineLimiter(engine, call), limit, workers=workers, clock=clock)
            for call, limit in limits.items()
        }
        return SharedState(local_store, limiters, {})
    # The client takes 0.2 s and 10 MiB to import.
    from headrace.adapters.valkey.client import AsyncValkeyClient  # noqa: PLC0415
    from headrace.adapters.valkey.idempotency import ValkeyIdempotencyStore  # noqa: PLC0415
    from headrace.adapters.valkey.rate_limiter import ValkeyRateLimiter  # noqa: PLC0415

    server = AsyncValkeyClient(url)
    stack.push_async_callback(server.close)
    idempotency_store = ValkeyIdempotencyStore(server, owner=f"{machine_name(paths.root)}/{worker}")
    await idempotency_store.open()
    shared_limiters = {
        call: ValkeyRateLimiter(server, limit, get_salt=salts.get, clock=clock)
        for call, limit in limits.items()
    }
    return SharedState(idempotency_store, shared_limiters, {"shared": server.is_ready})


def open_claims(
    settings: Settings, stack: ExitStack, *, paths: DataDirPaths, ledger: SqliteLedger
) -> DedupClaims | None:
    """Open the claims that a loader shares with other machines. Return None for one machine."""
    url = read_server_url(settings, "valkey_url")
    if not url:
        return None
    from headrace.adapters.valkey.client import ValkeyClient  # noqa: PLC0415
    from headrace.adapters.valkey.dedup_claims import ValkeyDedupClaims  # noqa: PLC0415

    claims = ValkeyDedupClaims(
        ValkeyClient(url),
        paths.claims,
        identity=ledger.identity(),
        machine=machine_name(paths.root),
        known_digests=ledger.all_known_digests,
        waits_for_pending=settings.ack_mode == "stored",
    )
    stack.callback(claims.close)
    return claims


def has_valkey(settings: Settings) -> bool:
    """Return whether Valkey stores idempotency keys and rate limits, not the data directory."""
    return bool(settings.valkey_url or settings.valkey_url_file)


def machine_name(data: Path) -> str:
    """Return a name that is unique to this data directory on this machine: 16 hex digits."""
    machine = _MACHINE_ID.read_text(encoding="ascii") if _MACHINE_ID.is_file() else ""
    identity = "\0".join((machine.strip(), socket.gethostname(), str(data.resolve())))
    return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()


def open_configured_directory(settings: Settings, clock: Clock) -> "SqlDirectory":
    """Open the directory; create and migrate its tables if needed. Blocking.

    Raises `OperatorError` when the database cannot be used, or its file is lost.
    """
    # SQLAlchemy takes 0.2 s and 20 MiB to import; the engine process has no use for it.
    from headrace.adapters.directory.sql_directory import open_directory  # noqa: PLC0415

    url = read_server_url(settings, "database_url")
    check_directory_file(settings)
    return open_directory(url or data_dir_paths(settings).directory, clock)
