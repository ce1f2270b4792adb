"""Measures what daily rollups add to inserts, disk usage, and the first start on an older store.

Run: .venv/bin/python -m bench.storage.rollup_inserts --folder DIR [--runs 5] [--fill 1000000]

The product's writer inserts the same batches into two databases of one new store, in turn: one with
the rollup and one without. CPU is that of the process until all parts are merged.
"""

import argparse
import shutil
from pathlib import Path
from typing import NamedTuple

from bench.baselines.chdb import BareChdb
from bench.dataset.columns import EVENTS_PER_SESSION, Slice, select_rows
from bench.dataset.generate import wait_until_merged
from bench.queries.sessions import cpu_s
from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.writer import ChdbWriter
from headrace.adapters.store.dialect import rollup_ddl
from headrace.adapters.store.dialect.ddl import MIGRATIONS
from headrace.base.telemetry import get_logger
from headrace.model.catalog import EVENTS

WEBSITES = tuple(f"web_{number}" for number in range(20))
BATCHES_BY_ROWS = {100_000: 2, 10_000: 6, 1_000: 20}
"""The number of batches of each size that one run stores."""
FILL_BATCH_ROWS = 100_000
MIGRATIONS_WITHOUT_ROLLUP = tuple(
    one for one in MIGRATIONS if one.statements != rollup_ddl.STATEMENTS
)
"""All migrations except that of the rollup: the others affect how much is merged."""


class Variant(NamedTuple):
    """A database and its writer."""

    name: str
    writer: ChdbWriter


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
    """Print the effect of the rollup on the CPU time of inserts, for each batch size."""
    for rows, count in BATCHES_BY_ROWS.items():
        spent = [0.0, 0.0]
        for run in range(runs):
            offsets = range(run * rows * count, (run + 1) * rows * count, rows)
            batches = [stream(source, offset, rows) for offset in offsets]
            for number, variant in enumerate(variants):
                spent[number] += insert_cpu_s(source, variant, batches, f"{rows}-{run}")
        print(f"insert of {rows} rows: {spent[0] / spent[1]:.2f} times the CPU", flush=True)


def fill(source: BareChdb, older: ChdbWriter, engine: ChdbInstance, rows: int) -> None:
    """Print the cost of the first start on a store without the rollup."""
    for offset in range(0, rows, FILL_BATCH_ROWS):
        older.insert(EVENTS, stream(source, offset, FILL_BATCH_ROWS), token=f"fill-{offset}")
    older.close()
    wait_until_merged(source)
    before_s = cpu_s()
    newer = ChdbWriter(engine, database="older")
    newer.prepare()
    spent_s = cpu_s() - before_s
    newer.close()
    ((stored, size),) = source.query(
        "SELECT sum(parent_rows), sum(bytes_on_disk) FROM system.projection_parts "
        "WHERE active AND database = 'older'"
    )
    print(f"filling {stored} events: {spent_s:.1f} s of CPU, {size / 1e6:.0f} MB more on disk")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where a store is made anew")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--fill", type=int, default=1_000_000)
    options = parser.parse_args()
    shutil.rmtree(store := options.folder.absolute() / "visit-inserts", ignore_errors=True)
    engine = ChdbInstance(store, log=get_logger())
    engine.open()
    variants = (
        Variant("with", ChdbWriter(engine, database="with")),
        Variant(
            "without", ChdbWriter(engine, database="without", migrations=MIGRATIONS_WITHOUT_ROLLUP)
        ),
    )
    older = ChdbWriter(engine, database="older", migrations=MIGRATIONS[:1])
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
