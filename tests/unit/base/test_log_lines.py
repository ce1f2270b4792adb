"""The format of a log line when no terminal reads it."""

import json
import subprocess
import sys

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
