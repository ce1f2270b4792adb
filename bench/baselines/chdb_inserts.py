"""Inserts encoded Arrow batches into bare chDB: the lower bound of the cost of storing rows (Y2).

Run: python -m bench.baselines.chdb_inserts take STORE BATCH | insert STORE BATCH

`take` writes the first 100,000 events of a store to a file. `insert` creates a new store with the
product's tables, and for each line N of its input inserts that file N times.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.baselines.chdb import BareChdb
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.ddl import column_list
from headrace.base.logs import get_logger
from headrace.model.catalog import EVENTS
from headrace.model.storage import STORAGE_TABLES

BATCH_ROWS = 100_000
_COLUMNS = column_list(STORAGE_TABLES[EVENTS.name])
_READY = b"ready\n"


class BareInserter:
    """A process that inserts on request."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The id of the process that runs chDB."""
        return self._process.pid

    def insert(self, times: int) -> None:
        """Insert the batch `times` times. Returns when all rows are on disk."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % times)
        self._process.stdin.flush()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the process has completed the request."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == _READY


def extract_batch(store: Path, batch: Path) -> None:
    """Write rows of a store to a file. No other process may have the store open."""
    subprocess.run(_command("take", store, batch), check=True)


@contextmanager
def run_bare_inserter(store: Path, batch: Path) -> Generator[BareInserter]:
    """Run the inserting process on a new store."""
    process = subprocess.Popen(
        _command("insert", store, batch), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        inserts = BareInserter(process)
        inserts.wait_ready()
        yield inserts
    finally:
        process.communicate()


def _command(command: str, store: Path, batch: Path) -> list[str]:
    return [sys.executable, "-m", "bench.baselines.chdb_inserts", command, str(store), str(batch)]


def _extract(store: Path, batch: Path) -> None:
    engine = BareChdb(store)
    batch.write_bytes(engine.query_arrow(f"SELECT {_COLUMNS} FROM events LIMIT {BATCH_ROWS}"))
    engine.close()


def _insert(store: Path, batch: Path) -> None:
    engine = ChdbInstance(store, log=get_logger())
    engine.open()
    ChdbWriter(engine).prepare()
    bare, rows, number = BareChdb(store), batch.read_bytes(), 0
    _signal_ready()
    for line in sys.stdin:
        for _ in range(int(line)):
            number += 1
            bare.insert(
                f"INSERT INTO events ({_COLUMNS}) SETTINGS async_insert = 0,"
                f" insert_deduplication_token = '{number}'",
                rows,
            )
        _signal_ready()
    bare.close()
    engine.close()


def _signal_ready() -> None:
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()


def main() -> None:
    command, store, batch = sys.argv[1:]
    {"take": _extract, "insert": _insert}[command](Path(store), Path(batch))


if __name__ == "__main__":
    main()
