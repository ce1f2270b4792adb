"""Log lines. None ever carries an address, a User-Agent, a key or a payload."""

import atexit
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Protocol, TextIO, cast

import msgspec
import structlog

from headrace.base.clock import SystemClock
from headrace.base.line_writer import LineWriter
from headrace.base.log_throttle import LogThrottle, LogThrottleFilter

_LEADING_FIELDS = ("timestamp", "level", "process", "event_name")
"""The fields that come first in a line of JSON, for readers."""

Logger = structlog.typing.FilteringBoundLogger


def configure_logging(level: str, *, process: str, may_block: bool = True) -> None:
    """Write log lines to standard error, each with the name of the process.

    Lines are JSON, or formatted text where standard error is a terminal. Lines that libraries
    write with the standard library's logging have the same form. Unless logging `may_block`, lines
    are dropped while nobody reads them, and their number is logged as `log_lines_dropped`.
    """
    severity = logging.getLevelNamesMapping()[level.upper()]
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_process(process),
        structlog.processors.EventRenamer("event_name"),
        structlog.processors.format_exc_info,
    ]
    at_terminal = sys.stderr.isatty()
    output = _Lossy(sys.stderr.buffer) if may_block else _open_line_writer()
    structlog.configure(
        processors=[*processors, _console_renderer() if at_terminal else _json_renderer(_dump)],
        wrapper_class=structlog.make_filtering_bound_logger(severity),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _Encoded(output)))
        if at_terminal
        else structlog.BytesLoggerFactory(cast("BinaryIO", output)),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(cast("TextIO", _Encoded(output)))
    handler.addFilter(
        LogThrottleFilter(
            LogThrottle(lines=10, window_s=10.0, monotonic_s=SystemClock().monotonic_s)
        )
    )
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=processors,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _console_renderer() if at_terminal else _json_renderer(_dump_text),
            ],
        )
    )
    logging.basicConfig(level=max(severity, logging.WARNING), handlers=[handler], force=True)


def _open_line_writer() -> LineWriter:
    writer = LineWriter(
        sys.stderr.fileno(),
        on_dropped=lambda lines: get_logger().warning("log_lines_dropped", lines=lines),
    )
    atexit.register(writer.drain)
    return writer


class _Output(Protocol):
    def write(self, line: bytes, /) -> None: ...

    def flush(self) -> None: ...


class _Encoded:
    """Encodes text, and writes whole lines, also where their end comes by itself.

    Each logger has its own and its own lock.
    """

    def __init__(self, output: _Output) -> None:
        self._output = output
        self._begun = ""

    def write(self, text: str) -> None:
        """Write text."""
        self._begun += text
        if self._begun.endswith("\n"):
            line, self._begun = self._begun, ""
            self._output.write(line.encode(errors="backslashreplace"))

    def flush(self) -> None:
        """Write what is buffered."""
        self._output.flush()


class _Lossy:
    """Writes lines, and drops them where that fails: a full disk of the log stops no process."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, line: bytes) -> None:
        """Write a line."""
        with contextlib.suppress(OSError):
            self._stream.write(line)

    def flush(self) -> None:
        """Write what is buffered. What does not fit stays there, and the next line tries again."""
        with contextlib.suppress(OSError):
            self._stream.flush()


def _console_renderer() -> structlog.typing.Processor:
    return structlog.dev.ConsoleRenderer(
        event_key="event_name", pad_event_to=20, colors=_has_colors(os.environ)
    )


def _has_colors(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal shows colors and its user wants them: see no-color.org."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def _json_renderer(serializer: Callable[..., str | bytes]) -> structlog.typing.Processor:
    return structlog.processors.JSONRenderer(serializer=serializer)


def get_logger() -> Logger:
    """Return a logger: `log.info("engine_started", pid=1)`."""
    return cast("Logger", structlog.get_logger())  # structlog types its lazy proxy as Any


def _add_process(process: str) -> structlog.typing.Processor:
    def add(
        _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        event["process"] = process
        return event

    return add


def _dump(event: Any, **_options: Any) -> bytes:  # noqa: ANN401 - structlog's serializer takes anything
    ordered = {name: event[name] for name in _LEADING_FIELDS if name in event} | event
    return msgspec.json.encode(ordered, enc_hook=str)


def _dump_text(event: Any, **options: Any) -> str:  # noqa: ANN401
    return _dump(event, **options).decode()
