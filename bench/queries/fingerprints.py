r"""Errors by fingerprint: made by each query, or stored in a MATERIALIZED column (ADR 37).

Run: .venv/bin/python -m bench.queries.fingerprints --folder DIR [--rows 2000000]

The rows are 400 errors with numbers, ids and URLs in their messages and stacks of 5 to 40 frames.
The folder gets a store of its own. Prints medians of wall-clock and CPU time.
"""

import argparse
import time
from pathlib import Path
from statistics import median

from bench.baselines.chdb import BareChdb
from bench.queries.sessions import cpu_s
from headrace.adapters.store.dialect.ddl import create_table
from headrace.adapters.store.dialect.fingerprint import FINGERPRINT
from headrace.model.storage import STORAGE_TABLES

RUNS = 5
BATCH_ROWS = 100_000
NAMES = "website_id, level, error_type, time, message, stack"
ROWS = r"""SELECT *, concat(message, arrayStringConcat(arrayMap(frame -> concat(
    '\n    at Part', toString((kind * 7 + frame) % 900), '.run (https://shop.example/assets/main.',
    lower(hex(kind)), '.js:1:', toString(frame * 311 + kind), ')'
), range(5 + kind % 36)))) AS stack
FROM (
    SELECT
        sipHash64(number) % 400 AS kind,
        'web_1' AS website_id,
        'error' AS level,
        'TypeError' AS error_type,
        toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number % 2592000 AS time,
        ['a', 'bc', 'def', 'ghij', 'klmno'][1 + kind % 5] AS word,
        multiIf(
            kind % 4 = 0, concat('Cannot read properties of undefined (reading ''', word, ''')'),
            kind % 4 = 1, concat('GET https://api.example/orders/', toString(number), ' failed'),
            kind % 4 = 2, concat('Order ', lower(hex(number)), ' has no ', word),
            concat(word, '.total is not a function')
        ) AS message
    FROM numbers({first}, {count})
)"""
RANGE = "website_id = 'web_1' AND time >= '2026-01-01 00:00:00' AND NOT is_bot"
SELECTS = {
    "by message": "SELECT message AS c, count(), min(time), max(time) FROM {table}"
    f" WHERE {RANGE} GROUP BY c ORDER BY 2 DESC LIMIT 50",
    "by fingerprint": "SELECT {value} AS c, count(), min(time), max(time) FROM {table}"
    f" WHERE {RANGE} GROUP BY c ORDER BY 2 DESC LIMIT 50",
    "one fingerprint": "SELECT count(), min(time), max(time) FROM {table}"
    f" WHERE {RANGE} AND {{value}} = 'ffffffffffffffff'",
}
VALUES = {"errors": FINGERPRINT, "errors_with_column": "fingerprint"}
"""The fingerprint in each of the two tables."""


def create(store: BareChdb) -> None:
    """Create the product's table, and one with the column."""
    store.query("SET use_query_condition_cache = 0")
    created = create_table(STORAGE_TABLES["errors"])
    for table in VALUES:
        columns = ", ".join(created.columns)
        store.query(
            f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY {created.order_by}"
            " SETTINGS default_compression_codec = 'ZSTD(1)'"
        )
    store.query(
        f"ALTER TABLE errors_with_column ADD COLUMN fingerprint String MATERIALIZED {FINGERPRINT}"
    )


def fill(store: BareChdb, table: str, rows: int) -> float:
    """Insert the rows in batches and return the CPU seconds."""
    before_s = cpu_s()
    for first in range(0, rows, BATCH_ROWS):
        made = ROWS.format(first=first, count=BATCH_ROWS)
        store.query(f"INSERT INTO {table} ({NAMES}) SELECT {NAMES} FROM ({made})")
    return cpu_s() - before_s


def measure(store: BareChdb, sql: str) -> str:
    """Return the medians of wall-clock and CPU milliseconds."""
    times: list[tuple[float, float]] = []
    for _ in range(RUNS):
        started_s, before_s = time.monotonic(), cpu_s()
        store.query(sql)
        times.append((time.monotonic() - started_s, cpu_s() - before_s))
    wall, cpu = (median(values) * 1000 for values in zip(*times, strict=True))
    return f"{wall:8.0f} ms {cpu:8.0f} ms CPU"


def main() -> None:
    """Fill both tables and run each select over each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=2_000_000)
    arguments = parser.parse_args()
    store = BareChdb(arguments.folder / "store", database="default")
    create(store)
    for table in VALUES:
        print(f"{table:20} insert {fill(store, table, arguments.rows):6.2f} s CPU")
        store.query(f"OPTIMIZE TABLE {table} FINAL")
        ((size,),) = store.query(
            f"SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = '{table}'"
        )
        print(f"{table:20} {int(size) / 1e6:.1f} MB")
    for name, sql in SELECTS.items():
        for table, value in VALUES.items():
            print(f"{table:20} {name:16} {measure(store, sql.format(table=table, value=value))}")
    store.close()


if __name__ == "__main__":
    main()
