"""System calls of another process that the crash test makes fail."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.failing_calls import prepare_failing_calls

_PROGRAM = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
for line in sys.stdin:
    try:
        print(os.pread(file, 9, 0) if line == "read\\n" else os.pwrite(file, b"new", 0), flush=True)
    except OSError as error:
        print(error.errno, flush=True)
"""


def test_only_the_calls_of_the_rule_fail_and_only_meanwhile(tmp_path: Path) -> None:
    calls = prepare_failing_calls(tmp_path)
    if calls is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "one.segment").write_bytes(b"old")
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "one.segment")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **calls.environment},
    ) as process:

        def result(call: str) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            print(call, file=process.stdin, flush=True)
            return process.stdout.readline().strip()

        before = result("read")
        with calls.failing(process.pid, "read", errno.EIO, ".segment"):
            reading = [result("read"), result("write")]
        with calls.failing(process.pid, "write", errno.ENOSPC, ".segment"):
            writing = [result("read"), result("write")]
        with calls.failing(process.pid + 1, "read", errno.EIO, ".segment"):
            others = result("read")
        with calls.failing(process.pid, "read", errno.EIO, ".sqlite"):
            others += result("read")
        with calls.failing(0, "read", errno.EIO, ".segment"):
            of_all = result("read")
        process.kill()

    assert before == "b'old'"
    assert reading == [str(errno.EIO), "3"]
    assert writing == ["b'new'", str(errno.ENOSPC)]
    assert others == "b'new'" * 2
    assert of_all == str(errno.EIO)
