"""Builds the engine process and runs it."""

import asyncio
import gc
from contextlib import ExitStack
from pathlib import Path

from headrace.adapters.data_dir.runtime_directory import ENGINE_SOCKET
from headrace.adapters.event_log.segment_reader import SegmentReader
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import SystemClock
from headrace.base.freed_memory import keep_freed_memory
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.wiring.data import data_dir_paths
from headrace.wiring.engine.chdb import chdb_engine_process
from headrace.wiring.engine.clickhouse import clickhouse_engine_process
from headrace.wiring.engine.dependencies import EngineDependencies
from headrace.wiring.shared import open_claims
from headrace.wiring.store_address import clickhouse_address

_GC_THRESHOLDS = (50_000, 20, 100)
"""Loading makes many small objects and no cycles; looking for cycles was a third of its time."""


async def run_engine(
    settings: Settings,
    *,
    runtime: Path,
    stop: asyncio.Event,
    is_alone: bool = False,
    erases_alone: bool = False,
) -> None:
    """Run the engine until `stop`. Raises `OperatorError` when it cannot begin.

    `is_alone` is for a command on a stopped service: no events arrive meanwhile. `erases_alone` is
    for one that restores a backup: other machines have nothing to do with its erasures.
    """
    keep_freed_memory()
    clock, metrics = SystemClock(), Metrics()
    paths = data_dir_paths(settings)
    metrics.count("headrace_process_starts_total", 1, "engine")
    with ExitStack() as stack:
        ledger = SqliteLedger.open(paths.ledger)
        stack.callback(ledger.close)
        reader = SegmentReader(paths.log, damaged=paths.damaged, clock=clock, metrics=metrics)
        stack.callback(reader.close)
        dependencies = EngineDependencies(
            settings,
            paths,
            ledger,
            reader,
            runtime / ENGINE_SOCKET,
            metrics,
            is_alone,
            erases_alone,
        )
        claims = open_claims(settings, stack, paths=paths, ledger=ledger)
        address = clickhouse_address(settings)
        if address is None:
            process = chdb_engine_process(dependencies, claims)
        else:
            process = clickhouse_engine_process(dependencies, claims, address)
        gc.freeze()  # what was made until here lives as long as the process
        gc.set_threshold(*_GC_THRESHOLDS)
        await process.run(stop)
