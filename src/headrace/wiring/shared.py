"""What machines share besides websites and keys: repeats and rate limits, or this one's own."""

import hashlib
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from msgspec import Struct

from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.adapters.engine.ipc.client import EngineConnections, EngineLimiter
from headrace.adapters.sqlite.idempotency import SqliteIdempotencyStore
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import Clock
from headrace.base.settings import Settings
from headrace.ingest.receive.visitor_salts import DailySalts
from headrace.ports.dedup_claims import DedupClaims
from headrace.ports.idempotency import IdempotencyStore
from headrace.ports.rate_limiter import RateLimiter
from headrace.wiring.data import data_dir_paths
from headrace.wiring.server_urls import read_server_url

_MACHINE_ID = Path("/etc/machine-id")


class SharedState(Struct, frozen=True):
    """What a worker uses; `readiness` names what must work for it beside the engine."""

    idempotency_store: IdempotencyStore
    limiter: RateLimiter
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
    """Open what the settings name; `stack` closes it. Raises `OperatorError`."""
    url = read_server_url(settings, "valkey_url")
    paths = data_dir_paths(settings)
    if not url:
        local_store = SqliteIdempotencyStore.open(paths.idempotency, owner=worker, clock=clock)
        stack.push_async_callback(local_store.close)
        return SharedState(local_store, EngineLimiter(engine), {})
    # Where it is not used it is not loaded: the library takes 0.2 s and 10 MiB.
    from headrace.adapters.valkey.client import AsyncValkeyClient  # noqa: PLC0415
    from headrace.adapters.valkey.idempotency import ValkeyIdempotencyStore  # noqa: PLC0415
    from headrace.adapters.valkey.rate_limiter import ValkeyRateLimiter  # noqa: PLC0415

    server = AsyncValkeyClient(url)
    stack.push_async_callback(server.close)
    repeats = ValkeyIdempotencyStore(server, owner=f"{machine_name(paths.root)}/{worker}")
    await repeats.open()
    limiter = ValkeyRateLimiter(server, settings.query_rate_limit, get_salt=salts.get, clock=clock)
    return SharedState(repeats, limiter, {"shared": server.is_ready})


def open_claims(
    settings: Settings, stack: ExitStack, *, paths: DataDirPaths, ledger: SqliteLedger
) -> DedupClaims | None:
    """Open what a loader asks other machines by; None where there are no others."""
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
    """Tell whether repeats and rate limits are outside of the data directory."""
    return bool(settings.valkey_url or settings.valkey_url_file)


def machine_name(data: Path) -> str:
    """Return a name for a data directory on this machine that no other has."""
    machine = _MACHINE_ID.read_text(encoding="ascii") if _MACHINE_ID.is_file() else ""
    identity = "\0".join((machine.strip(), socket.gethostname(), str(data.resolve())))
    return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()


def open_configured_directory(settings: Settings, clock: Clock) -> SqlDirectory:
    """Open the directory, made and migrated where that is due. Blocking."""
    url = read_server_url(settings, "database_url")
    return open_directory(url or data_dir_paths(settings).directory, clock)


def has_external_directory(settings: Settings) -> bool:
    """Tell whether the directory is outside of the data directory."""
    return bool(settings.database_url or settings.database_url_file)
