"""Memory that is freed stays with the process until it is returned."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
from pathlib import Path
from headrace.base.freed_memory import keep_freed_memory, return_freed_memory

SIZE = 20 * 1024 * 1024

def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()

def fill():
    return len(bytearray(b"x") * SIZE)

keep_freed_memory()
before = resident_bytes()
fill()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
fill()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
kept = resident_bytes() - before
return_freed_memory()
print(faults, round(kept / SIZE), round((resident_bytes() - before) / SIZE))
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc",
    reason="needs glibc on Linux",
)
def test_freed_buffer_is_used_again_and_is_returned_on_request() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    faults, kept, returned = map(int, done.stdout.split())
    assert (kept, returned) == (1, 0)
    assert faults < 100  # of the 5,120 pages of the buffer
