"""Builds and runs a worker: the process that serves HTTP."""

import asyncio
import gc
import socket
from contextlib import AsyncExitStack
from pathlib import Path

from headrace.base.logs import get_logger
from headrace.base.metrics import Metrics
from headrace.base.settings import Settings
from headrace.http.admission import Admission
from headrace.http.app import create_app
from headrace.http.server.server import serve
from headrace.wiring.worker.ingestion import make_ingest_service, open_log
from headrace.wiring.worker.parts import open_parts
from headrace.wiring.worker.use_cases import make_use_cases


async def run_worker(
    settings: Settings,
    *,
    index: int,
    listening_socket: socket.socket,
    runtime: Path,
    stop: asyncio.Event,
) -> None:
    """Serve until `stop` and finish accepted requests. Raises `OperatorError` during startup."""
    metrics = Metrics()
    metrics.count("headrace_process_starts_total", 1, "worker")
    async with AsyncExitStack() as stack:
        parts = await open_parts(settings, stack, index=index, runtime=runtime, metrics=metrics)
        event_log, log_checks = await open_log(parts, stack)
        ingest_service = make_ingest_service(parts, event_log, stack)
        app = create_app(
            make_use_cases(parts, ingest_service, log_checks, stack=stack, stop=stop),
            Admission(
                tenancy=parts.tenancy,
                sessions=parts.directory.sessions,
                limiters=parts.shared_state.limiters,
                clock=parts.clock,
            ),
            settings=settings,
            metrics=metrics,
            nowait_acceptor=ingest_service,
        )
        gc.freeze()  # these objects live as long as the process
        get_logger().info("worker_ready")
        await serve(
            app,
            listening_socket=listening_socket,
            settings=settings,
            stop=stop,
            fast_path=app.fast_path,
        )
