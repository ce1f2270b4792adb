"""Measures what derived data adds to inserts, disk usage, and the first start on an older store.

Run: .venv/bin/python -m bench.storage.rollup_inserts --folder DIR [--of rollup] [--runs 5]
[--fill 1000000]

The product's writer inserts the same batches into two databases of one new store, in turn: one with
all migrations and one without that of the daily rollup, or that of the keys of ids (`--of keys`),
or that of the test for simple properties (`--of properties`).
CPU is that of the process until all parts are merged and all mutations are done.
"""

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bench.baselines.chdb import BareChdb
from bench.dataset.columns import EVENTS_PER_SESSION, Slice, select_rows
from bench.dataset.generate import wait_until_merged
from bench.queries.sessions import cpu_s
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect import id_key_ddl, rollup_ddl, simple_properties_ddl
from headrace.adapters.store.dialect.ddl import MIGRATIONS, Migration
from headrace.adapters.store.dialect.statements import Statement
from headrace.base.logs import get_logger
from headrace.model.catalog import EVENTS

WEBSITES = tuple(f"web_{number}" for number in range(20))
BATCHES_BY_ROWS = {100_000: 2, 10_000: 6, 1_000: 20}
"""The number of batches of each size that one run stores."""
FILL_BATCH_ROWS = 100_000
DERIVED: Mapping[str, tuple[Statement, ...]] = {
    "rollup": rollup_ddl.STATEMENTS,
    "keys": id_key_ddl.STATEMENTS,
    "properties": simple_properties_ddl.STATEMENTS,
}
SIZE = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '{}'"


class Variant(NamedTuple):
    """A database and its writer."""

    name: str
    writer: ChdbWriter


def migrations_without(derived: str) -> tuple[Migration, ...]:
    """Return all other migrations: they affect how much is merged."""
    return tuple(one for one in MIGRATIONS if one.statements != DERIVED[derived])


def migrations_before(derived: str) -> tuple[Migration, ...]:
    """Return the migrations of the version before."""
    return MIGRATIONS[: [one.statements for one in MIGRATIONS].index(DERIVED[derived])]


def stream(source: BareChdb, first: int, rows: int) -> bytes:
    """Return about `rows` rows of events, starting at `first`."""
    piece = Slice(
        first // EVENTS_PER_SESSION, rows // EVENTS_PER_SESSION, 10_000_000 // EVENTS_PER_SESSION
    )
    return source.query_arrow(select_rows(EVENTS, piece, WEBSITES, seed=1))


def insert_cpu_s(source: BareChdb, variant: Variant, batches: list[bytes], token: str) -> float:
    """Insert batches and return the CPU time, including that of the resulting merges."""
    before_s = cpu_s()
    for number, batch in enumerate(batches):
        variant.writer.insert(EVENTS, batch, token=f"{token}-{number}")
    wait_until_merged(source)
    return cpu_s() - before_s


def compare_inserts(source: BareChdb, variants: tuple[Variant, Variant], runs: int) -> None:
    """Print the effect on the CPU time of inserts, for each batch size, and on the disk."""
    for rows, count in BATCHES_BY_ROWS.items():
        spent = [0.0, 0.0]
        for run in range(runs):
            offsets = range(run * rows * count, (run + 1) * rows * count, rows)
            batches = [stream(source, offset, rows) for offset in offsets]
            for number, variant in enumerate(variants):
                spent[number] += insert_cpu_s(source, variant, batches, f"{rows}-{run}")
        print(f"insert of {rows} rows: {spent[0] / spent[1]:.2f} times the CPU", flush=True)
    sizes = [source.query(SIZE.format(variant.name))[0][0] for variant in variants]
    print(f"disk: {sizes[0] / 1e6:.0f} MB, {sizes[0] / sizes[1]:.3f} times as much")


def fill(source: BareChdb, older: ChdbWriter, engine: ChdbInstance, rows: int) -> None:
    """Print the cost of the first start on a store that has none of it."""
    for offset in range(0, rows, FILL_BATCH_ROWS):
        older.insert(EVENTS, stream(source, offset, FILL_BATCH_ROWS), token=f"fill-{offset}")
    older.close()
    wait_until_merged(source)
    (size_before,) = source.query(SIZE.format("older"))[0]
    before_s = cpu_s()
    newer = ChdbWriter(engine, database="older")
    newer.prepare()
    wait_until_merged(source)
    spent_s = cpu_s() - before_s
    newer.close()
    (size,) = source.query(SIZE.format("older"))[0]
    added = (size - size_before) / 1e6
    print(f"filling {rows} events: {spent_s:.1f} s of CPU, {added:.0f} MB more on disk")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where a new store is made")
    parser.add_argument("--of", choices=DERIVED, default="rollup")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--fill", type=int, default=1_000_000)
    options = parser.parse_args()
    shutil.rmtree(store := options.folder.absolute() / "visit-inserts", ignore_errors=True)
    engine = ChdbInstance(store, log=get_logger())
    engine.open()
    without = migrations_without(options.of)
    variants = (
        Variant("with", ChdbWriter(engine, database="with")),
        Variant("without", ChdbWriter(engine, database="without", migrations=without)),
    )
    older = ChdbWriter(engine, database="older", migrations=migrations_before(options.of))
    for writer in (*(variant.writer for variant in variants), older):
        writer.prepare()
    source = BareChdb(store, database="with")
    compare_inserts(source, variants, options.runs)
    fill(source, older, engine, options.fill)
    source.close()
    for variant in variants:
        variant.writer.close()
    engine.close()
    shutil.rmtree(store)


if __name__ == "__main__":
    main()
