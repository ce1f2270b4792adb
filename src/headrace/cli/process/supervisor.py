"""Runs the child processes of one service: starts, restarts and stops them.

Does not depend on what they do. Its memory stays small: it imports no web framework, engine or
database.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct

from headrace.base.clock import Clock
from headrace.base.logs import Logger
from headrace.cli.process.heartbeat import Heartbeat

EXIT_OPERATOR_ERROR = 78
"""A child's exit code for an error that only the operator can correct (EX_CONFIG): no restart."""

_MIN_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 10.0
_STABLE_AFTER_S = 30.0


class ProcessSpec(Struct, frozen=True):
    """One child: its name, its arguments to the headrace command, the descriptors it inherits.

    Children with a lower `stop_order` stop first. A child that still runs `stop_timeout_s` after
    the service began to stop is killed, and so is one that sends no heartbeat for
    `watchdog_timeout_s`.
    """

    name: str
    arguments: tuple[str, ...]
    descriptors: tuple[int, ...] = ()
    stop_order: int = 0
    stop_timeout_s: float = 10.0
    watchdog_timeout_s: float = 30.0


class _ChildExit(Struct, frozen=True):
    """The exit of a child. `uptime_s` excludes the time without a heartbeat."""

    exit_code: int
    uptime_s: float


class Supervisor:
    """Runs the children of one service until `stop`.

    Each child inherits the read end of a pipe. Only the supervisor has the write end: when the
    supervisor dies, even by SIGKILL, the pipe is closed and the child exits.
    """

    def __init__(
        self,
        specs: Sequence[ProcessSpec],
        *,
        environment: Mapping[str, str],
        clock: Clock,
        log: Logger,
    ) -> None:
        self._specs = specs
        self._environment = dict(environment)
        self._clock = clock
        self._log = log
        self._children: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._has_failed_to_start = False
        self._has_started = False

    def stop(self) -> None:
        """Request the stop. `run` returns when all children have exited."""
        self._stopping.set()

    def mark_started(self) -> None:
        """Record that the service was ready: from now on a failed child is always restarted."""
        self._has_started = True

    async def run(self) -> bool:
        """Run until `stop`. Return False if a child failed to start and printed the reason."""
        tasks = [
            asyncio.create_task(self._run_and_restart(spec), name=spec.name) for spec in self._specs
        ]
        await self._stopping.wait()
        await self._stop_children()
        await asyncio.gather(*tasks)
        return not self._has_failed_to_start

    async def _run_and_restart(self, spec: ProcessSpec) -> None:
        backoff_s = _MIN_BACKOFF_S
        while not self._stopping.is_set():
            child_exit = await self._run_once(spec)
            code = child_exit.exit_code
            if self._stopping.is_set():
                return
            if code == EXIT_OPERATOR_ERROR and not self._has_started:
                self._has_failed_to_start = True
                self.stop()
                return
            backoff_s = _MIN_BACKOFF_S if child_exit.uptime_s > _STABLE_AFTER_S else backoff_s
            self._log.error("process_died", child=spec.name, exit_code=code, restart_in_s=backoff_s)
            await self._back_off(backoff_s)
            backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)

    async def _run_once(self, spec: ProcessSpec) -> _ChildExit:
        with contextlib.ExitStack() as stack:
            try:
                lifeline, write_end = os.pipe()
                stack.callback(os.close, write_end)  # ends a child that nothing waits for
                stack.callback(os.close, lifeline)
                heartbeat = Heartbeat(spec.watchdog_timeout_s)
                stack.callback(heartbeat.close)
                child = await self._start(spec, lifeline, heartbeat)
            except (OSError, RuntimeError) as error:
                # No memory, too many processes or files, no permission; no thread that waits for it
                reason = error.strerror if isinstance(error, OSError) else str(error)
                self._log.error("process_not_started", child=spec.name, reason=reason)
                return _ChildExit(EXIT_OPERATOR_ERROR, uptime_s=0)
            heartbeat.close_child_end()
            started_s = self._clock.monotonic_s()
            if self._stopping.is_set():  # `stop` was called during the start
                _signal(child, signal.SIGKILL)
            watching = asyncio.create_task(self._kill_when_silent(spec, child, heartbeat))
            code = await child.wait()
            watching.cancel()
            uptime_s = self._clock.monotonic_s() - started_s - heartbeat.silence_s
        del self._children[spec.name]
        return _ChildExit(code, uptime_s)

    async def _start(
        self, spec: ProcessSpec, lifeline: int, heartbeat: Heartbeat
    ) -> asyncio.subprocess.Process:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headrace",
            *spec.arguments,
            *("--lifeline", str(lifeline), "--heartbeat", str(heartbeat.descriptor)),
            env=self._environment,
            pass_fds=(*spec.descriptors, lifeline, heartbeat.descriptor),
            stdin=asyncio.subprocess.DEVNULL,
        )
        self._children[spec.name] = child
        self._log.info("process_started", child=spec.name, child_pid=child.pid)
        return child

    async def _kill_when_silent(
        self, spec: ProcessSpec, child: asyncio.subprocess.Process, heartbeat: Heartbeat
    ) -> None:
        await heartbeat.wait_for_silence()
        self._log.error("process_hung", child=spec.name, silent_for_s=round(heartbeat.silence_s))
        _signal(child, signal.SIGKILL)

    async def _back_off(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _stop_children(self) -> None:
        began_s = asyncio.get_running_loop().time()
        for order in sorted({spec.stop_order for spec in self._specs}):
            await asyncio.gather(
                *(
                    self._stop_child(spec, deadline_s=began_s + spec.stop_timeout_s)
                    for spec in self._specs
                    if spec.stop_order == order
                )
            )

    async def _stop_child(self, spec: ProcessSpec, *, deadline_s: float) -> None:
        child = self._children.get(spec.name)
        if child is None:
            return
        _signal(child, signal.SIGTERM)
        try:
            async with asyncio.timeout_at(deadline_s):
                await child.wait()
        except TimeoutError:
            self._log.warning("process_killed", child=spec.name, after_s=spec.stop_timeout_s)
            _signal(child, signal.SIGKILL)
            await child.wait()


def _signal(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    try:
        child.send_signal(number)
    except ProcessLookupError:
        return  # it has exited already
