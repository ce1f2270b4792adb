"""Lines of a log whose reader is slow, away, or back again."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.base.line_writer import LineWriter
from testing.service import wait_until

NEVER_S = 0.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def fill(write_end: int) -> int:
    """Fill a pipe; return the number of bytes."""
    os.set_blocking(write_end, False)
    size = 0
    try:
        while True:
            size += os.write(write_end, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(write_end, True)
    return size


def read_exactly(read_end: int, size: int) -> bytes:
    content = b""
    while len(content) < size:
        content += os.read(read_end, size - len(content))
    return content


def test_lines_are_written_in_order(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1])
    lines = [b"%d\n" % number for number in range(500)]
    for line in lines:
        writer.write(line)
    assert writer.drain(timeout_s=30)
    assert read_exactly(pipe[0], sum(map(len, lines))) == b"".join(lines)


def test_lines_wait_for_a_reader_and_the_rest_is_counted(pipe: tuple[int, int]) -> None:
    filled = fill(pipe[1])
    dropped: list[int] = []
    writer = LineWriter(pipe[1], max_lines=3, on_dropped=dropped.append)
    writer.write(b"first\n")
    wait_until(lambda: not writer.drain(NEVER_S) and not writer.waiting, "the writer is blocked")
    for number in range(5):
        writer.write(b"%d\n" % number)
    assert not writer.drain(NEVER_S)

    read_exactly(pipe[0], filled)

    assert writer.drain(timeout_s=30)
    assert read_exactly(pipe[0], 12) == b"first\n0\n1\n2\n"
    assert dropped == [2]


def test_description_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    filled = fill(pipe[1])
    os.set_blocking(pipe[1], False)
    writer = LineWriter(pipe[1])
    writer.write(b"line\n")
    read_exactly(pipe[0], filled)
    assert read_exactly(pipe[0], 5) == b"line\n"
    os.set_blocking(pipe[1], True)


def test_reader_that_has_ended_costs_its_lines_alone(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    writer = LineWriter(write_end)
    writer.write(b"lost\n")
    assert writer.drain(timeout_s=30)
    with (tmp_path / "log").open("wb") as file:
        os.dup2(file.fileno(), write_end)
    writer.write(b"kept\n")
    assert writer.drain(timeout_s=30)
    os.close(write_end)
    assert (tmp_path / "log").read_bytes() == b"kept\n"
