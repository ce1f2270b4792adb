"""The format of a log line, where a terminal reads it and where none does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

PROGRAM = """\
from headrace.base.logs import configure_logging, get_logger
configure_logging("info", process="worker-0")
get_logger().debug("accepted")
get_logger().info("request", status=200, duration_ms=1.5)
"""


def test_log_line_begins_with_time_level_logger_and_event() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    (line,) = done.stderr.splitlines()
    fields = json.loads(line)
    assert list(fields) == ["timestamp", "level", "process", "event_name", "status", "duration_ms"]
    assert list(fields.values())[1:] == ["info", "worker-0", "request", 200, 1.5]


@pytest.mark.parametrize(
    ("variables", "has_colors"),
    [
        pytest.param({"TERM": "xterm"}, True, id="terminal"),
        pytest.param({"TERM": "xterm", "NO_COLOR": ""}, True, id="empty NO_COLOR"),
        pytest.param({"TERM": "xterm", "NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param({"TERM": "dumb"}, False, id="dumb terminal"),
    ],
)
def test_log_line_has_colors_where_the_terminal_shows_them(
    variables: Mapping[str, str], has_colors: bool
) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    controller, terminal = os.openpty()
    subprocess.run(
        [sys.executable, "-c", PROGRAM],
        stderr=terminal,
        env={**inherited, **variables},
        timeout=60,
        check=True,
    )
    line = os.read(controller, 4096).decode()
    os.close(terminal)
    os.close(controller)
    assert ("request" in line, "\x1b[" in line) == (True, has_colors)
