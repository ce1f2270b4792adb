"""Inserts ready Arrow batches into the bare engine: the least that storing rows can cost (Y2).

Run: python -m bench.bare_inserts take STORE BATCH | insert STORE BATCH

`take` writes the first 100,000 events of a store to a file. `insert` makes a new store with the
product's tables, and for each line N of its input inserts that file N times.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.bare_engine import BareEngine
from headrace.adapters.store.chdb.connection import ChdbEngine
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.ddl import column_list
from headrace.base.telemetry import get_logger
from headrace.model.catalog import EVENTS
from headrace.model.storage import STORED

BATCH_ROWS = 100_000
_COLUMNS = column_list(STORED[EVENTS.name])
_READY = b"ready\n"


class BareInserts:
    """A process that inserts when it is told to."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The process that has the engine."""
        return self._process.pid

    def insert(self, times: int) -> None:
        """Insert the batch so many times; return when all of it is on disk."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % times)
        self._process.stdin.flush()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until it has done what it was told."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == _READY


def take_batch(store: Path, batch: Path) -> None:
    """Write rows of a store that nobody has open to a file."""
    subprocess.run(_command("take", store, batch), check=True)


@contextmanager
def bare_inserts(store: Path, batch: Path) -> Generator[BareInserts]:
    """Run the inserting process on a new store."""
    process = subprocess.Popen(
        _command("insert", store, batch), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        inserts = BareInserts(process)
        inserts.wait_ready()
        yield inserts
    finally:
        process.communicate()


def _command(what: str, store: Path, batch: Path) -> list[str]:
    return [sys.executable, "-m", "bench.bare_inserts", what, str(store), str(batch)]


def _take(store: Path, batch: Path) -> None:
    engine = BareEngine(store)
    batch.write_bytes(engine.query_arrow(f"SELECT {_COLUMNS} FROM events LIMIT {BATCH_ROWS}"))
    engine.close()


def _insert(store: Path, batch: Path) -> None:
    engine = ChdbEngine(store, log=get_logger())
    engine.open()
    ChdbWriter(engine).prepare()
    bare, rows, number = BareEngine(store), batch.read_bytes(), 0
    _say_ready()
    for line in sys.stdin:
        for _ in range(int(line)):
            number += 1
            bare.insert(
                f"INSERT INTO events ({_COLUMNS}) SETTINGS async_insert = 0,"
                f" insert_deduplication_token = '{number}'",
                rows,
            )
        _say_ready()
    bare.close()
    engine.close()


def _say_ready() -> None:
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()


def main() -> None:
    what, store, batch = sys.argv[1:]
    {"take": _take, "insert": _insert}[what](Path(store), Path(batch))


if __name__ == "__main__":
    main()
