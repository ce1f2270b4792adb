"""Counts distinct visitors exactly in several ways, over one website's month of a large data set.

Run: .venv/bin/python -m bench.queries.distinct_visitors --folder DIR [--of 100000000] [--runs 5]

The table has the events of the biggest website in the last thirty of ninety days, as in a data set
of `--of` events, with few of the columns. The ways run in turn; what they return must be equal.
Prints medians of wall-clock and CPU time, the disk usage of each column, and of states by day.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.baselines.chdb import BareChdb
from bench.dataset.columns import DAYS, EVENTS_PER_SESSION, Slice, select_rows
from bench.queries.sessions import cpu_s
from headrace.model.catalog import EVENTS

WEBSITES = tuple(f"web_{number}" for number in range(20))
BATCH_EVENTS = 2_000_000
MONTH_DAYS = 30
WARM_UPS = 1

HASH = "reinterpretAsUInt128(sipHash128(anonymous_id))"
PLAIN = "website_id, time, is_bot, path, country, anonymous_id, session_id"
COLUMNS = f"""
    website_id LowCardinality(String), time DateTime64(3, 'UTC'), is_bot Bool, path String,
    country LowCardinality(String), anonymous_id String, session_id String,
    key_128 UInt128 MATERIALIZED {HASH}, key_128_lz4 UInt128 MATERIALIZED {HASH} CODEC(LZ4),
    key_128_none UInt128 MATERIALIZED {HASH} CODEC(NONE),
    key_64 UInt64 MATERIALIZED sipHash64(anonymous_id),
    key_64_lz4 UInt64 MATERIALIZED sipHash64(anonymous_id) CODEC(LZ4),
    session_key UInt128 MATERIALIZED reinterpretAsUInt128(sipHash128(session_id)),
    number UInt32
"""
TABLES = (
    (
        f"CREATE TABLE month ({COLUMNS}) ENGINE = MergeTree ORDER BY (website_id, time)"
        " SETTINGS default_compression_codec = 'ZSTD(1)'"
    ),
    "CREATE TABLE numbers_of (key UInt128, number UInt32) ENGINE = Memory",
    (
        "CREATE TABLE drawn (website_id LowCardinality(String), time DateTime64(3, 'UTC'),"
        " is_bot Bool, path String, country LowCardinality(String), anonymous_id String,"
        " session_id String)"
        " ENGINE = MergeTree ORDER BY (website_id, time)"
    ),
    (
        "CREATE TABLE states (day Date, path String, keys AggregateFunction(uniqExact, UInt128),"
        " numbers AggregateFunction(groupBitmap, UInt32)) ENGINE = MergeTree ORDER BY (day, path)"
        " SETTINGS default_compression_codec = 'ZSTD(1)'"
    ),
    (
        "CREATE TABLE daily (day Date, session_key UInt128, key UInt128, country"
        " LowCardinality(String), events UInt32) ENGINE = MergeTree ORDER BY (day, session_key)"
        " SETTINGS default_compression_codec = 'ZSTD(1)'"
    ),
)
ROWS = "month WHERE website_id = 'web_0' AND NOT is_bot"


def _states(value: str, groups: str, condition: str) -> str:
    uniq = f"uniqExactIf({value}, {condition})"
    return f"SELECT {groups} AS g, count() AS n, {uniq} AS u FROM {ROWS} GROUP BY g"


def _two_steps(value: str, groups: str, condition: str) -> str:
    pairs = f"SELECT {groups} AS g, {value} AS v, count() AS m FROM {ROWS} GROUP BY g, v"
    return f"SELECT g, sum(m) AS n, countIf({condition}) AS u FROM ({pairs}) GROUP BY g"


def ways(groups: str) -> Mapping[str, str]:
    """Return the statements that count rows and visitors by a column, by what they do."""
    keys = {
        "128 bits": "key_128",
        "128 bits, LZ4": "key_128_lz4",
        "128 bits, not compressed": "key_128_none",
        "64 bits": "key_64",
        "64 bits, LZ4": "key_64_lz4",
        "dense numbers": "number",
    }
    return {
        "texts": _states("anonymous_id", groups, "anonymous_id != ''"),
        "128 bits, hashed by the query": _states(HASH, groups, f"{HASH} != 0"),
        "texts, two steps": _two_steps("anonymous_id", groups, "v != ''"),
        **{name: _states(key, groups, f"{key} != 0") for name, key in keys.items()},
        **{
            f"{name}, two steps": _two_steps(keys[name], groups, "v != 0")
            for name in ("128 bits", "64 bits", "dense numbers")
        },
        "dense numbers, bitmaps": (
            f"SELECT {groups} AS g, count() AS n, groupBitmap(number) AS u FROM {ROWS} GROUP BY g"
        ),
        "rows alone, no visitors": (
            f"SELECT {groups} AS g, count() AS n, 0 AS u FROM {ROWS} GROUP BY g"
        ),
        "keys read, not distinguished": (
            f"SELECT {groups} AS g, count() AS n, max(key_128) AS u FROM {ROWS} GROUP BY g"
        ),
    }


STORED = {
    "path": {
        "states of 128 bits by day": (
            "SELECT path AS g, 0 AS n, uniqExactMerge(keys) AS u FROM states GROUP BY g"
        ),
        "bitmaps of dense numbers by day": (
            "SELECT path AS g, 0 AS n, groupBitmapMerge(numbers) AS u FROM states GROUP BY g"
        ),
    },
    "country": {
        "128 bits of a daily rollup": (
            "SELECT country AS g, sum(events) AS n, uniqExact(key) AS u FROM daily GROUP BY g"
        ),
    },
    "'all'": {
        "128 bits of a daily rollup": (
            "SELECT 'all' AS g, sum(events) AS n, uniqExact(key) AS u FROM daily GROUP BY g"
        ),
    },
}


def slices(events: int) -> Iterator[Slice]:
    """Return the sessions of the last thirty days of a data set."""
    sessions = events // EVENTS_PER_SESSION
    first = sessions * (DAYS - MONTH_DAYS) // DAYS
    count = BATCH_EVENTS // EVENTS_PER_SESSION
    for start in range(first, sessions, count):
        yield Slice(start, min(count, sessions - start), sessions)


def fill(store: BareChdb, events: int) -> None:
    """Create the tables and insert the events of the month, and the states of each day."""
    for statement in TABLES:
        store.query(statement)
    for piece in slices(events):
        rows = select_rows(EVENTS, piece, WEBSITES, seed=1)
        store.query(f"INSERT INTO drawn SELECT {PLAIN} FROM ({rows}) WHERE website_id = 'web_0'")
    store.query(
        f"INSERT INTO numbers_of SELECT {HASH} AS key, rowNumberInAllBlocks() + 1 FROM"
        " (SELECT DISTINCT anonymous_id FROM drawn)"
    )
    store.query(
        f"INSERT INTO month ({PLAIN}, number) SELECT {PLAIN}, numbers_of.number FROM drawn"
        f" JOIN numbers_of ON {HASH} = numbers_of.key"
    )
    store.query("OPTIMIZE TABLE month FINAL")
    store.query(
        "INSERT INTO states SELECT toDate(time) AS day, path, uniqExactState(key_128),"
        f" groupBitmapState(number) FROM {ROWS} GROUP BY day, path"
    )
    store.query(
        "INSERT INTO daily SELECT toDate(time) AS day, session_key, key_128, country, count()"
        f" FROM {ROWS} GROUP BY day, session_key, key_128, country"
    )


def print_sizes(store: BareChdb) -> None:
    """Print what the columns and the states take on disk."""
    for line in store.query(
        "SELECT table, column, sum(column_data_compressed_bytes) / sum(rows),"
        " sum(column_data_compressed_bytes) / 1e6 FROM system.parts_columns WHERE active"
        " AND table IN ('month', 'states', 'daily') GROUP BY table, column ORDER BY table, column"
    ):
        print("{:8}{:16}{:8.1f} bytes a row{:9.1f} MB".format(*line))
    ((rows, visitors, pairs, daily),) = store.query(
        "SELECT count(), uniqExact(key_128), uniqExact(path, key_128),"
        f" uniqExact(toDate(time), path, key_128) FROM {ROWS}"
    )
    print(f"{rows:,} rows, {visitors:,} visitors, {pairs:,} with paths, {daily:,} with days too")


def measure(store: BareChdb, statements: Mapping[str, str], runs: int) -> None:
    """Run the statements in turn and print the medians of each."""
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in statements}
    results: dict[str, object] = {}
    for _ in range(WARM_UPS + runs):
        for name, sql in statements.items():
            started_s, before_s = time.perf_counter(), cpu_s()
            rows = store.query(f"SELECT * FROM ({sql}) ORDER BY u DESC, g LIMIT 100")
            costs[name].append((time.perf_counter() - started_s, cpu_s() - before_s))
            results[name] = [(group, visitors) for group, _, visitors in rows]
    for name, times in costs.items():
        wall, cpu = (statistics.median(one) * 1e3 for one in zip(*times[WARM_UPS:], strict=True))
        same = "equal" if results[name] == results["texts"] else "not the same"
        print(f"{name:36}{wall:9.0f} ms{cpu:9.0f} ms CPU  {same}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where a store is made")
    parser.add_argument("--of", type=int, default=100_000_000, help="events of the data set")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--settings", default="max_threads = 2", help="settings of the queries")
    parser.add_argument("--by", nargs="+", choices=STORED, default=list(STORED))
    options = parser.parse_args()
    folder = options.folder / f"month-of-{options.of}"
    is_filled = folder.exists()
    store = BareChdb(folder, database="default")
    if not is_filled:
        fill(store, options.of)
    store.query(f"SET {options.settings}")
    print_sizes(store)
    for groups in options.by:
        print(f"\nby {groups}")
        measure(store, {**ways(groups), **STORED[groups]}, options.runs)
    store.close()


if __name__ == "__main__":
    main()
