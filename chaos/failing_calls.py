"""Makes system calls of a running process fail, as on a failing or full disk.

A library that is preloaded into the service fails the calls that a rule file names.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")
_VARIABLE = "CHAOS_FAILING_CALLS"


class FailingCalls:
    """The rule of the processes that were started with `environment`."""

    def __init__(self, library: Path, rule: Path) -> None:
        self._rule = rule
        self.environment: Mapping[str, str] = {"LD_PRELOAD": str(library), _VARIABLE: str(rule)}

    @contextmanager
    def failing(self, pid: int, call: str, error: int, text: str) -> Generator[None]:
        """Fail `read` or `write` of a process with an errno on files whose path has a text.

        0 is every process.
        """
        unfinished = self._rule.with_suffix(".unfinished")
        unfinished.write_text(f"{pid} {call} {error} {text}")
        unfinished.rename(self._rule)
        try:
            yield
        finally:
            self._rule.unlink()


def prepare_failing_calls(work: Path) -> FailingCalls | None:
    """Compile the library; None where there is no C compiler, or not Linux."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = work / "failing_calls.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"]
    done = subprocess.run(command, check=False, env=dict(os.environ))
    return FailingCalls(library, work / "failing-calls") if done.returncode == 0 else None
