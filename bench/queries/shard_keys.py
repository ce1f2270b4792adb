"""Ten queries over two shards whose rows are distributed by batch, by session and by website.

    python -m bench.queries.shard_keys [--rows 500000]

Prints the median time and the CPU time of both servers for each query and distribution. Both
servers run on this machine, so the CPU time applies to two machines, but the wall time does not.
"""

import argparse
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from testing.queries import query_body, select, statement_of
from testing.servers.clickhouse import ClickHouseServers, ClickHouseTables
from testing.servers.clickhouse_configuration import CLUSTER
from testing.servers.clickhouse_programs import clickhouse_program

ROUNDS = 6
VISITORS = select("anonymous_id", "uniq", "visitors")
QUERIES = {
    "count": query_body(),
    "top pages": query_body(group_by=["path"]),
    "distinct visitors": query_body(VISITORS),
    "distinct visitors by country": query_body(VISITORS, group_by=["country"]),
    "by day": query_body(granularity="daily"),
    "distinct visitors by day": query_body(VISITORS, granularity="daily"),
    "p95": query_body(select("value", "p95", "p95")),
    "sessions, mean duration": query_body(select("duration", "avg", "mean"), table="sessions"),
    "sessions by entry page": query_body(table="sessions", group_by=["entry_path"]),
    "profiles": query_body(table="profiles"),
}
PLACEMENTS = {
    "batch": "intDiv(number, 20000)",
    "session": "xxHash64(number % 97003)",
    "website": "number",
}
INSERT = """
    INSERT INTO `{database}`.events
        (id, website_id, event_name, time, session_id, anonymous_id, path, country, value)
    SELECT reinterpretAsFixedString(toUInt128(number)), if(number % 2 = 0, 'web_1', 'web_2'),
        'pageview', toDateTime64('2026-01-02 00:00:00', 3, 'UTC') + number * 2400000 / {rows},
        's' || toString(number % 97003), 'a' || toString(number % 61001),
        '/page/' || toString(cityHash64(number) % 500), ['DE', 'FR', 'US', 'GB'][1 + number % 4],
        number % 1000
    FROM numbers({rows}) WHERE ({placement}) % 2 = {shard}
"""


def servers_cpu_s(servers: ClickHouseServers) -> float:
    """Return the CPU time of the servers in seconds."""
    ticks = 0
    for server in servers.servers:
        fields = Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


def measure(servers: ClickHouseServers, placement: str, rows: int) -> Mapping[str, str]:
    """Return the cost and the result of each query for one distribution of the rows."""
    tables = ClickHouseTables(servers.servers, cluster=CLUSTER, replicated=0)
    for shard, server in enumerate(servers.servers):
        database = tables.address.local_database
        server.execute(
            INSERT.format(database=database, rows=rows, placement=placement, shard=shard)
        )
    costs: dict[str, str] = {}
    for name, body in QUERIES.items():
        statement = statement_of(body, tables.dialect)
        expected = tables.select(statement)
        times: list[float] = []
        cpu_before_s = servers_cpu_s(servers)
        for _ in range(ROUNDS):
            started_s = time.monotonic()
            assert tables.select(statement) == expected
            times.append(time.monotonic() - started_s)
        spent_ms = (servers_cpu_s(servers) - cpu_before_s) / ROUNDS * 1000
        costs[name] = f"{statistics.median(times) * 1000:.0f} ms, {spent_ms:.0f} ms CPU"
    tables.close()
    return costs


def main() -> None:
    """Measure all distributions and print one line per query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    rows: int = parser.parse_args().rows
    servers = ClickHouseServers(clickhouse_program(), 2)
    try:
        servers.start()
        costs = {name: measure(servers, sql, rows) for name, sql in PLACEMENTS.items()}
    finally:
        servers.remove()
    print("| Question |", " | ".join(costs), "|")
    for name in QUERIES:
        print(f"| {name} |", " | ".join(cost[name] for cost in costs.values()), "|")


if __name__ == "__main__":
    main()
