"""What machines share besides websites and keys: repeats and rate limits, or this one's own."""

import hashlib
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from msgspec import Struct

from headrace.adapters.data_dir.paths import DataPlaces
from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.adapters.engine.ipc.client import EngineConnections, EngineLimiter
from headrace.adapters.sqlite.idempotency import SqliteRepeats
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import Clock
from headrace.base.settings import Settings, secret_text
from headrace.ingest.receive.visitor_salts import VisitorSalts
from headrace.ports.dedup_claims import Claims
from headrace.ports.idempotency import Repeats
from headrace.ports.rate_limiter import Limiter
from headrace.wiring.data import places_of

_MACHINE_ID = Path("/etc/machine-id")


class WorkerShares(Struct, frozen=True):
    """What a worker uses; `readiness` names what must work for it beside the engine."""

    repeats: Repeats
    limiter: Limiter
    readiness: Mapping[str, Callable[[], Awaitable[bool]]]


async def open_worker_shares(
    settings: Settings,
    opened: AsyncExitStack,
    *,
    worker: str,
    engine: EngineConnections,
    salts: VisitorSalts,
    clock: Clock,
) -> WorkerShares:
    """Open what the settings name; `opened` closes it. Raises `OperatorError`."""
    url = secret_text(settings, "shared")
    places = places_of(settings)
    if not url:
        own = SqliteRepeats.open(places.repeats, owner=worker, clock=clock)
        opened.push_async_callback(own.close)
        return WorkerShares(own, EngineLimiter(engine), {})
    # Where it is not used it is not loaded: the library takes 0.2 s and 10 MiB.
    from headrace.adapters.valkey.client import AsyncSharedServer  # noqa: PLC0415
    from headrace.adapters.valkey.idempotency import SharedRepeats  # noqa: PLC0415
    from headrace.adapters.valkey.rate_limiter import SharedLimiter  # noqa: PLC0415

    server = AsyncSharedServer(url)
    opened.push_async_callback(server.close)
    repeats = SharedRepeats(server, owner=f"{machine_name(places.root)}/{worker}")
    await repeats.open()
    limiter = SharedLimiter(server, settings.query_rate_limit, salt_at=salts.salt_at, clock=clock)
    return WorkerShares(repeats, limiter, {"shared": server.is_ready})


def open_claims(
    settings: Settings, opened: ExitStack, *, places: DataPlaces, ledger: SqliteLedger
) -> Claims | None:
    """Open what a loader asks other machines by; None where there are no others."""
    url = secret_text(settings, "shared")
    if not url:
        return None
    from headrace.adapters.valkey.client import SharedServer  # noqa: PLC0415
    from headrace.adapters.valkey.dedup_claims import SharedClaims  # noqa: PLC0415

    claims = SharedClaims(
        SharedServer(url),
        places.claims,
        identity=ledger.identity(),
        machine=machine_name(places.root),
        seen=ledger.all_seen,
        waits=settings.ack == "stored",
    )
    opened.callback(claims.close)
    return claims


def shares_repeats(settings: Settings) -> bool:
    """Tell whether repeats and rate limits are outside of the data directory."""
    return bool(settings.shared or settings.shared_file)


def machine_name(data: Path) -> str:
    """Return a name for a data directory on this machine that no other has."""
    machine = _MACHINE_ID.read_text(encoding="ascii") if _MACHINE_ID.is_file() else ""
    told = "\0".join((machine.strip(), socket.gethostname(), str(data.resolve())))
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def open_directory_of(settings: Settings, clock: Clock) -> SqlDirectory:
    """Open the directory, made and migrated where that is due. Blocking."""
    url = secret_text(settings, "directory")
    return open_directory(url or places_of(settings).directory, clock)


def shares_directory(settings: Settings) -> bool:
    """Tell whether the directory is outside of the data directory."""
    return bool(settings.directory or settings.directory_file)
