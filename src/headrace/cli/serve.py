"""`headrace serve` and the hidden commands of its child processes: the workers and the engine."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from headrace import __version__
from headrace.base.build import build_digest
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, Unavailable
from headrace.base.line_writer import LineWriter
from headrace.base.logs import configure_logging, get_logger
from headrace.base.metrics import METRICS_DIRECTORY_VARIABLE
from headrace.base.settings import (
    Settings,
    load_settings,
    settings_environment,
    suggest_setting_names,
    worker_count,
)
from headrace.cli.listening import listening
from headrace.cli.options import reachable_host, setting_options
from headrace.cli.process.child import exit_with_parent, raise_file_limit, stop_on_signals
from headrace.cli.process.heartbeat import send_heartbeats
from headrace.cli.process.supervisor import (
    EXIT_OPERATOR_ERROR,
    ProcessSpec,
    Supervisor,
)
from headrace.wiring.data import ServiceRuntime, create_data_dir, locked_for_service
from headrace.wiring.directory_file import check_directory_file
from headrace.wiring.store import check_configured_files

_WORKERS_KILLED_AFTER_S = 2.0
_ENGINE_KILLED_AFTER_S = 3.5
"""After `shutdown_timeout_s`. By default the service stops within ten seconds in any state.

The rest is for the exits of killed processes, which take more than half a second on a busy machine.
Killing the engine loses nothing: events that are not stored yet are in the log.
"""

_PUBLISH_INTERVAL_S = 1.0

_FIRST_READY_PAUSE_S = 0.05
_MAX_READY_PAUSE_S = 1.0
_READY_PAUSE_FACTOR = 1.25
"""After a while each response that says not ready is a line of the log, perhaps for hours."""


@click.command("serve")
@setting_options()
def serve_command(**overrides: str | None) -> None:
    """Accept events and answer queries until stopped by SIGTERM, Ctrl-C, or the terminal's end.

    Each option is also an environment variable: --port is HEADRACE_PORT. The option takes
    precedence.
    """
    settings = load_settings(overrides)
    configure_logging(settings.log_level, process="supervisor", may_block=False)
    for variable, suggestion in suggest_setting_names(os.environ).items():
        get_logger().warning("unknown_variable", variable=variable, did_you_mean=suggestion)
    check_configured_files(settings)
    raise_file_limit()
    create_data_dir(settings)
    with (
        locked_for_service(settings) as runtime,
        listening(settings) as listening_socket,
    ):
        check_directory_file(settings)
        has_started = asyncio.run(_supervise(settings, listening_socket, runtime))
    if not has_started:
        sys.exit(1)


@click.command("worker", hidden=True)
@click.option("--index", type=int, required=True)
@click.option("--socket", "descriptor", type=int, required=True)
@click.option("--runtime", type=click.Path(path_type=Path), required=True)
@click.option("--lifeline", type=int, required=True)
@click.option("--heartbeat", type=int, required=True)
def worker_command(
    *, index: int, descriptor: int, runtime: Path, lifeline: int, heartbeat: int
) -> None:
    """Serve HTTP on an inherited socket. The supervisor starts this."""
    from headrace.wiring.worker.process import run_worker  # noqa: PLC0415 - the supervisor must not import it

    settings = load_settings()
    configure_logging(settings.log_level, process=f"worker-{index}", may_block=False)
    listening_socket = socket.socket(fileno=descriptor)
    _run_child(
        lambda stop: run_worker(
            settings, index=index, listening_socket=listening_socket, runtime=runtime, stop=stop
        ),
        settings,
        lifeline=lifeline,
        heartbeat=heartbeat,
    )


@click.command("engine", hidden=True)
@click.option("--runtime", type=click.Path(path_type=Path), required=True)
@click.option("--lifeline", type=int, required=True)
@click.option("--heartbeat", type=int, required=True)
def engine_command(runtime: Path, lifeline: int, heartbeat: int) -> None:
    """Load the logs into the store and run queries. The supervisor starts this."""
    from headrace.wiring.engine.process import run_engine  # noqa: PLC0415 - the supervisor must not import it

    settings = load_settings()
    configure_logging(settings.log_level, process="engine", may_block=False)
    _run_child(
        lambda stop: run_engine(settings, runtime=runtime, stop=stop),
        settings,
        lifeline=lifeline,
        heartbeat=heartbeat,
    )


def _run_child(
    run: Callable[[asyncio.Event], Coroutine[Any, Any, None]],
    settings: Settings,
    *,
    lifeline: int,
    heartbeat: int,
) -> None:
    import uvloop  # noqa: PLC0415 - the supervisor must not import it

    exit_with_parent(lifeline)

    async def main() -> None:
        heartbeat_task = asyncio.create_task(
            send_heartbeats(heartbeat, settings.watchdog_timeout_s)
        )
        await run(stop_on_signals())
        heartbeat_task.cancel()

    try:
        uvloop.run(main())
    except OperatorError as error:
        click.echo(f"headrace: {error}", err=True)
        sys.exit(EXIT_OPERATOR_ERROR)
    except Unavailable as error:  # such as a full disk: the supervisor tries again
        get_logger().error("process_failed", reason=str(error))
        sys.exit(1)


async def _supervise(
    settings: Settings, listening_socket: socket.socket, runtime: ServiceRuntime
) -> bool:
    metrics_directory = runtime.directory / "metrics"
    metrics_directory.mkdir()
    supervisor = Supervisor(
        _process_specs(settings, listening_socket.fileno(), runtime.directory),
        environment={
            # numpy's library of linear algebra, which nothing here uses, starts a thread for each
            # processor when it is imported.
            "OPENBLAS_NUM_THREADS": "1",
            **os.environ,
            **settings_environment(settings),
            METRICS_DIRECTORY_VARIABLE: str(metrics_directory),
        },
        clock=SystemClock(),
        log=get_logger(),
    )
    host, port = listening_socket.getsockname()[:2]

    def stop() -> None:
        listening_socket.close()  # else new connections would wait in a queue that is never read
        supervisor.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        loop.add_signal_handler(signal.SIGHUP, stop)
    announcement = asyncio.create_task(_announce(settings, host, port, supervisor))
    publishing = asyncio.create_task(_publish(runtime))
    try:
        return await supervisor.run()
    finally:
        announcement.cancel()
        publishing.cancel()


async def _publish(runtime: ServiceRuntime) -> None:
    """Publish the runtime directory, as soon as the disk has space for that.

    Until then commands look for the socket of an earlier service.
    """
    if runtime.publish():
        return
    get_logger().warning("runtime_directory_not_published")
    while not await asyncio.to_thread(runtime.publish):  # noqa: ASYNC110 - space is no event
        await asyncio.sleep(_PUBLISH_INTERVAL_S)
    get_logger().info("runtime_directory_published")


def _process_specs(settings: Settings, descriptor: int, runtime: Path) -> list[ProcessSpec]:
    """Return the children. Workers stop first: the engine runs the queries they have accepted."""
    runtime_option = ("--runtime", str(runtime))
    engine = ProcessSpec(
        "engine",
        ("engine", *runtime_option),
        stop_order=1,
        stop_timeout_s=settings.shutdown_timeout_s + _ENGINE_KILLED_AFTER_S,
        watchdog_timeout_s=settings.watchdog_timeout_s,
    )
    workers = [
        ProcessSpec(
            f"worker-{index}",
            ("worker", *("--index", str(index), "--socket", str(descriptor)), *runtime_option),
            descriptors=(descriptor,),
            stop_timeout_s=settings.shutdown_timeout_s + _WORKERS_KILLED_AFTER_S,
            watchdog_timeout_s=settings.watchdog_timeout_s,
        )
        for index in range(worker_count(settings))
    ]
    return [engine, *workers]


async def _announce(settings: Settings, host: str, port: int, supervisor: Supervisor) -> None:
    """Print the address of the service when it is ready."""
    pause_s = _FIRST_READY_PAUSE_S
    while not await _is_ready(host, port):  # readiness is another process's
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * _READY_PAUSE_FACTOR, _MAX_READY_PAUSE_S)
    supervisor.mark_started()
    shown = f"[{host}]" if ":" in host else host
    build = await asyncio.to_thread(build_digest)
    get_logger().info("service_ready", host=host, port=port, version=__version__, build=build)
    line = f"Headrace answers on http://{shown}:{port} and keeps its data in {settings.data_dir}\n"
    # Not by print, which blocks while nobody reads, and whose buffer fails at the exit.
    LineWriter(sys.stdout.fileno()).write(line.encode(errors="surrogateescape"))


async def _is_ready(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_connection(reachable_host(host), port)
            writer.write(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            status = await reader.readline()
            writer.close()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in status
