"""What both ingestion and queries of one worker use."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET
from headrace.adapters.directory.tenancy_source import PollingTenancySource
from headrace.adapters.engine.ipc.connections import EngineConnections
from headrace.base.clock import Clock, SystemClock
from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.ingest.receive.visitor_salts import DailySalts, expire_salts
from headrace.model.data_retention import RetentionPolicy
from headrace.ports.directory import Directory
from headrace.wiring.shared import SharedState, open_configured_directory, open_shared_state

if TYPE_CHECKING:
    from headrace.adapters.directory.sql_directory import SqlDirectory


class WorkerParts(Struct, frozen=True, kw_only=True):
    """What both ingestion and queries of one worker use. `name` is that of its event log."""

    settings: Settings
    name: str
    runtime: Path
    clock: Clock
    metrics: Metrics
    directory: "SqlDirectory"
    tenancy: PollingTenancySource
    engine: EngineConnections
    salts: DailySalts
    shared_state: SharedState
    retention: RetentionPolicy


async def open_parts(
    settings: Settings, stack: AsyncExitStack, *, index: int, runtime: Path, metrics: Metrics
) -> WorkerParts:
    """Open the directory and what machines share; `stack` closes them."""
    clock, name = SystemClock(), f"worker-{index}"
    directory = await asyncio.to_thread(open_configured_directory, settings, clock)
    stack.callback(directory.close)
    tenancy = await _start_tenancy_source(directory, settings, stack, clock=clock)
    engine = EngineConnections(runtime / ENGINE_SOCKET)
    stack.push_async_callback(engine.close)
    salts = DailySalts(directory.visitor_salt)
    expiring = asyncio.create_task(expire_salts(salts, directory.forget_visitor_salts, clock))
    stack.callback(expiring.cancel)
    return WorkerParts(
        settings=settings,
        name=name,
        runtime=runtime,
        clock=clock,
        metrics=metrics,
        directory=directory,
        tenancy=tenancy,
        engine=engine,
        salts=salts,
        shared_state=await open_shared_state(
            settings, stack, worker=name, engine=engine, salts=salts, clock=clock
        ),
        retention=RetentionPolicy(settings.retain_days),
    )


async def _start_tenancy_source(
    directory: Directory, settings: Settings, stack: AsyncExitStack, *, clock: Clock
) -> PollingTenancySource:
    """Start to poll the directory for changed websites and keys."""
    tenancy = PollingTenancySource(
        directory,
        clock=clock,
        log=get_logger(),
        max_staleness_s=settings.directory_max_staleness_s,
    )
    await tenancy.start()
    stack.push_async_callback(tenancy.close)
    return tenancy
