"""Checks in an `strace` log of a process that each 200 follows the fsync that covers it."""

import re
import shutil
import signal
import subprocess
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

from testing.service import STOP_TIMEOUT_S, wait_until

RECEIVING = frozenset({"read", "readv", "recvfrom", "recvmsg"})
SENDING = frozenset({"write", "writev", "sendto", "sendmsg"})
WRITING = frozenset({"write", "writev", "pwrite64", "pwritev"})
SYNCING = frozenset({"fsync", "fdatasync"})
TRACED = RECEIVING | SENDING | WRITING | SYNCING | {"openat"}
# -xx prints all strings in hexadecimal, so that no content can be mistaken for syntax. -yy prints
# the file behind each descriptor. -s prints whole contents, because a record may be anywhere in the
# write of its group.
STRACE = ("strace", "-f", "-ttt", "-xx", "-yy", "-s", "1000000", "-e", "trace=" + ",".join(TRACED))

_LINE = re.compile(r"(?P<thread>\d+) +\d+\.\d+ (?P<call>.*)")
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|\?)(?P<rest>.*)")
_FILE = re.compile(r"(?:AT_FDCWD|\d+)<(TCP:\[[^]]*\]|[^>]*)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class SystemCall(NamedTuple):
    """A completed call. `begun` and `ended` are line numbers in the output of `strace`.

    `file` is a path, or the two ends of a connection. `content` is the concatenation of all string
    arguments.
    """

    name: str
    file: str
    content: bytes
    arguments: str
    result: int
    begun: int
    ended: int


def parse_calls(lines: Iterable[str]) -> list[SystemCall]:
    """Parse the output of `strace -f -ttt -xx -yy`; each thread runs one call at a time."""
    calls: list[SystemCall] = []
    unfinished: dict[str, tuple[str, int]] = {}
    for arguments_at, line in enumerate(lines):
        match = _LINE.match(line)
        if match is None:
            continue
        thread, text = match["thread"], match["call"]
        if text.endswith(_UNFINISHED):
            unfinished[thread] = (text.removesuffix(_UNFINISHED), arguments_at)
            continue
        begun = arguments_at
        if (resumed := _RESUMED.match(text)) and thread in unfinished:
            beginning, begun = unfinished.pop(thread)
            text = beginning + text[resumed.end() :]
        if call := _parse_call(text, begun, arguments_at):
            calls.append(call)
    return calls


def ordering_error(calls: Sequence[SystemCall], marker: bytes) -> str | None:
    """Return how the durability of the request that contains a marker is violated, or None.

    The required order is: the record is written to a segment, the segment is synced without an
    error, and, if the segment was created during the trace, its directory is synced. The 200 comes
    last.
    """
    request = _first(c for c in calls if c.name in RECEIVING and marker in c.content)
    if request is None:
        return "the request was not seen"
    response = _first(c for c in calls if _is_reply_to(request, c))
    if response is None or not response.content.startswith(b"HTTP/1.1 200 "):
        return "the request was not answered with 200"
    before = [c for c in calls if c.ended < response.begun]
    record = _first(c for c in before if _is_record(c, marker))
    if record is None:
        return "the record was not written before the 200"
    if not any(_syncs(c, record.file, after=record) for c in before):
        return "the record was not synced before the 200"
    made = _first(c for c in before if _creates(c, record.file))
    directory = str(PurePosixPath(record.file).parent)
    if made is not None and not any(_syncs(c, directory, after=made) for c in before):
        return "the name of the segment was not synced before the 200"
    return None


@contextmanager
def traced(pid: int, trace: Path) -> Generator[None]:
    """Trace a process and its threads while the block runs; skip the test if that is impossible."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    parts = trace.with_suffix(".words")
    with parts.open("wb") as stderr:
        tracer = subprocess.Popen([*STRACE, "-o", str(trace), "-p", str(pid)], stderr=stderr)
    try:
        wait_until(lambda: bool(parts.read_text()), "strace says something")
        if " attached" not in parts.read_text():
            pytest.skip(f"this machine lets no process be traced: {parts.read_text().strip()}")
        yield
    finally:
        tracer.send_signal(signal.SIGINT)  # detaches; the process continues
        tracer.wait(STOP_TIMEOUT_S)


def traced_calls(
    command: Sequence[str], trace: Path, *, env: Mapping[str, str]
) -> list[SystemCall]:
    """Run a command to its end and return its calls; skip the test if that is impossible."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    done = subprocess.run(
        [*STRACE, "-o", str(trace), *command],
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
        check=False,
    )
    if "ptrace" in done.stderr:
        pytest.skip(f"this machine lets no process be traced: {done.stderr.strip()}")
    assert done.returncode == 0, done
    return parse_calls(trace.read_text().splitlines())


def _parse_call(text: str, begun: int, ended: int) -> SystemCall | None:
    match = _CALL.fullmatch(text)
    if match is None or match["result"] == "?":
        return None
    arguments = match["arguments"]
    subject = match["rest"] if match["name"] == "openat" else arguments  # openat returns its file
    file = _FILE.match(subject.strip() if subject is arguments else "0" + subject)
    return SystemCall(
        name=match["name"],
        file=_plain(file[1]).decode() if file else "",
        content=b"".join(_plain(text) for text in _TEXT.findall(arguments)),
        arguments=arguments,
        result=int(match["result"]),
        begun=begun,
        ended=ended,
    )


def _plain(text: str) -> bytes:
    """Undo -xx; strace prints connections, and the numbers behind a device, unencoded."""
    if text.startswith("\\x"):
        return bytes.fromhex(text.partition("<")[0].replace("\\x", ""))
    return text.encode()


def _is_reply_to(request: SystemCall, call: SystemCall) -> bool:
    return (
        call.name in SENDING
        and call.file == request.file
        and call.begun > request.ended
        and call.content.startswith(b"HTTP/1.1 ")
    )


def _is_record(call: SystemCall, marker: bytes) -> bool:
    return (
        call.name in WRITING
        and call.file.endswith(".segment")
        and marker in call.content
        and call.result == len(call.content)
    )


def _syncs(call: SystemCall, file: str, *, after: SystemCall) -> bool:
    return (
        call.name in SYNCING and call.file == file and call.result == 0 and call.begun > after.ended
    )


def _creates(call: SystemCall, file: str) -> bool:
    return call.name == "openat" and call.file == file and "O_CREAT" in call.arguments


def _first(calls: Iterable[SystemCall]) -> SystemCall | None:
    return next(iter(calls), None)
