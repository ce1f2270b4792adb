"""Makes a data directory with millions of realistic events, on which `headrace serve` answers.

Run: .venv/bin/python -m bench.dataset.generate --folder DIR [--events 10000000] [--of EVENTS]
[--again]

Twenty websites of unequal size, ninety days from 2026-01-01 on, visits of 1 to 30 events, about
eight visits a person; for a hundred events ten web vitals and two errors. `--of` tells how many
events the ninety days hold: with fewer `--events` only the first days are there, as they were when
there was less. Rows come from SQL in the engine and go through the product's own writer, so tables,
settings and fsyncs are the real ones. What is there already is used again.
"""

import argparse
import hashlib
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from bench.baselines.chdb import BareChdb
from bench.dataset import columns, words
from bench.dataset.columns import (
    DAYS,
    EVENTS_PER_SESSION,
    FIRST_DAY_MS,
    WEBSITES,
    Slice,
    select_rows,
)
from headrace.adapters.data_dir.format import ensure_format_marker
from headrace.adapters.data_dir.paths import DataDirPaths
from headrace.adapters.directory.sql_directory import open_directory
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect.ddl import MIGRATIONS
from headrace.adapters.store.dialect.statements import render
from headrace.base.clock import SystemClock
from headrace.base.telemetry import get_logger
from headrace.model.catalog import STORED_TABLES
from headrace.model.tenancy import Scope

BATCH_EVENTS = 100_000
_SETTLED_S = 3.0
_SETTLE_TIMEOUT_S = 300.0


class Dataset(Struct, frozen=True, kw_only=True, rename={"fingerprint": "made_of"}):
    """A data directory and what is in it. Websites are in the order of their sizes.

    `key` may read and write all websites. `all_events` is how many the ninety days hold.
    """

    data: str
    events: int
    all_events: int
    seed: int
    websites: tuple[str, ...]
    key: str
    fingerprint: str

    @property
    def paths(self) -> DataDirPaths:
        """Where its parts stand."""
        return DataDirPaths(Path(self.data))


class Tenants(NamedTuple):
    """The websites, biggest first, and the secret of a key for all of them."""

    websites: tuple[str, ...]
    key: str


def ensure_dataset(
    folder: Path, *, events: int, all_events: int | None = None, seed: int = 1, again: bool = False
) -> Dataset:
    """Return a data set within a folder, made where it is not there or was made otherwise."""
    all_events = all_events or events
    root = folder.absolute() / f"{events}-of-{all_events}-seed-{seed}"
    manifest = root / "dataset.json"
    if manifest.exists() and not again:
        existing = msgspec.json.decode(manifest.read_bytes(), type=Dataset)
        if existing.fingerprint == _fingerprint():
            return existing
    shutil.rmtree(root, ignore_errors=True)
    data = root / "data"
    data.mkdir(parents=True)
    ensure_format_marker(data)
    tenants = _make_tenants(data, seed)
    _fill(DataDirPaths(data), tenants.websites, events=events, all_events=all_events, seed=seed)
    dataset = Dataset(
        data=str(data),
        events=events,
        all_events=all_events,
        seed=seed,
        websites=tenants.websites,
        key=tenants.key,
        fingerprint=_fingerprint(),
    )
    manifest.write_bytes(msgspec.json.encode(dataset))
    return dataset


def batches(*, events: int, all_events: int, first: int = 0) -> Iterator[Slice]:
    """The visits of so many events from a place on, a hundred thousand events in each slice."""
    sessions = BATCH_EVENTS // EVENTS_PER_SESSION
    for start in range(first, first + events, BATCH_EVENTS):
        yield Slice(start // EVENTS_PER_SESSION, sessions, all_events // EVENTS_PER_SESSION)


def _make_tenants(data: Path, seed: int) -> Tenants:
    """Make websites and a key whose ids are the same each time: the rows have them."""
    rng = random.Random(seed)
    directory = open_directory(
        DataDirPaths(data).directory, SystemClock(), randomness=rng.randbytes
    )
    try:
        websites = tuple(
            directory.create_website(name=f"Shop {number}", domain=f"shop{number}.example").id
            for number in range(1, WEBSITES + 1)
        )
        _, key = directory.create_key(scopes=frozenset(Scope))
    finally:
        directory.close()
    return Tenants(websites, key)


def _fill(
    paths: DataDirPaths, websites: tuple[str, ...], *, events: int, all_events: int, seed: int
) -> None:
    engine = ChdbInstance(paths.store, log=get_logger())
    engine.open()
    writer = ChdbWriter(engine)
    writer.prepare()
    source = BareChdb(paths.store)
    try:
        for number, piece in enumerate(batches(events=events, all_events=all_events)):
            for table in STORED_TABLES:
                stream = source.query_arrow(select_rows(table, piece, websites, seed=seed))
                writer.insert(table, stream, token=f"dataset-{number}")
        wait_until_merged(source)
    finally:
        source.close()
        writer.close()
        engine.close()


def wait_until_merged(engine: BareChdb) -> None:
    """Return when no parts have been merged for some seconds."""
    deadline_s = time.monotonic() + _SETTLE_TIMEOUT_S
    quiet_since_s = time.monotonic()
    while time.monotonic() < min(deadline_s, quiet_since_s + _SETTLED_S):
        if engine.query("SELECT 1 FROM system.merges LIMIT 1"):
            quiet_since_s = time.monotonic()
        time.sleep(0.1)


def _fingerprint() -> str:
    """Tell tables and generators apart: a data set of other ones is of no use."""
    modules = (columns, words)
    sources = [Path(str(module.__file__)).read_text() for module in modules]
    statements = [render(one) for migration in MIGRATIONS for one in migration.statements]
    return hashlib.sha256("\n".join([*sources, *statements]).encode()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where data sets are kept")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--of", type=int, help="events of all ninety days; as many by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="make it anew")
    options = parser.parse_args()
    started_s = time.monotonic()
    dataset = ensure_dataset(
        options.folder,
        events=options.events,
        all_events=options.of,
        seed=options.seed,
        again=options.again,
    )
    first_day = time.strftime("%Y-%m-%d", time.gmtime(FIRST_DAY_MS / 1000))
    print(
        f"data      {dataset.data}\nkey       {dataset.key}\nwebsites  {' '.join(dataset.websites)}"
    )
    print(f"{dataset.events} events of {dataset.all_events} in {DAYS} days from {first_day} on")
    print(f"ready after {time.monotonic() - started_s:.1f} s")


if __name__ == "__main__":
    main()
