"""How a signal ends a command: with its cleanup, one line, and the exit status of the signal."""

import contextlib
import os
import signal
import sys
from collections.abc import Generator
from types import FrameType
from typing import Final, NoReturn

import click

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def ended_by_signals() -> Generator[None]:
    """Run a command. What interrupts it is raised in it, and ends the process afterwards.

    By default signals end a process without its cleanup: a file that is written in part would
    remain. Signals that are ignored, as by nohup, stay ignored.
    """
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        on_interrupt = signal.getsignal(signal.SIGINT)
        if not callable(on_interrupt):
            raise KeyboardInterrupt
        on_interrupt(signal.SIGINT, frame)  # that of asyncio cancels the task and lets it end

    numbers = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    for number in numbers:
        signal.signal(number, interrupt)
    if before[signal.SIGINT] is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which asyncio replaces
    try:
        yield
    except KeyboardInterrupt:
        _end_by(received[0] if received else signal.SIGINT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_signals_to_parent() -> None:
    """Ignore what a terminal sends to all processes. The parent ends this one by SIGTERM."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end_by(number: int) -> NoReturn:
    """End as the signal would have: a shell ends its loop when Ctrl-C has ended a command."""
    with contextlib.suppress(OSError):  # the terminal may be gone
        if sys.stderr.isatty():
            click.echo(err=True)  # after the ^C
        click.echo("headrace: interrupted", err=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(128 + number)  # the first process of a container does not end by a default action
