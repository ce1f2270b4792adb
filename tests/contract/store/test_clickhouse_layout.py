"""What is written for a replicated cluster, which no test can run: a real ClickHouse parses it."""

import pytest

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store.clickhouse.layout import (
    create_databases,
    create_version_table,
    distribute_tables,
    local_statements,
    mutations_table,
)
from headrace.adapters.store.dialect.ddl import MIGRATIONS, Migration

REPLICATED = parse_address("clickhouse://h/headrace?cluster=main")
STATEMENTS = [
    *create_databases(REPLICATED),
    create_version_table(REPLICATED),
    *(one for migration in MIGRATIONS for one in local_statements(REPLICATED, migration)),
    *distribute_tables(REPLICATED, MIGRATIONS, replace_existing=False),
    *distribute_tables(REPLICATED, MIGRATIONS, replace_existing=True),
]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda text: text[:60])
def test_a_statement_for_a_replicated_cluster_can_be_parsed(
    statement: str, chdb_engine: ChdbInstance
) -> None:
    assert chdb_engine.execute(f"EXPLAIN AST {statement}")


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda text: text[:60])
def test_a_statement_for_a_replicated_cluster_runs_on_all_of_its_nodes(statement: str) -> None:
    assert statement.count(" ON CLUSTER `main`") == 1
    assert "currentDatabase()" not in statement


def test_mutations_are_looked_for_on_all_nodes_of_a_replicated_cluster(
    chdb_engine: ChdbInstance,
) -> None:
    assert chdb_engine.execute(f"EXPLAIN AST SELECT is_done FROM {mutations_table(REPLICATED)}")
    assert mutations_table(parse_address("clickhouse://h/headrace")) == "system.mutations"


def test_replicas_of_a_shard_share_a_path_and_a_deduplication_log() -> None:
    (events, *_) = local_statements(REPLICATED, MIGRATIONS[0])
    assert events.startswith(
        "CREATE TABLE IF NOT EXISTS `headrace_shard`.`events` ON CLUSTER `main`"
    )
    assert (
        "ENGINE = ReplicatedMergeTree('/headrace/{shard}/{database}/{table}', '{replica}')"
    ) in events
    assert "replicated_deduplication_window = 10000" in events
    assert "non_replicated_deduplication_window" not in events


def test_versions_are_the_same_on_every_node() -> None:
    assert (
        "ReplicatedMergeTree('/headrace/all/{database}/{table}', '{shard}-{replica}')"
    ) in create_version_table(REPLICATED)


def test_table_engine_arguments_are_kept() -> None:
    made = "CREATE TABLE IF NOT EXISTS `t`\n(`a` UInt8)\nENGINE = ReplacingMergeTree(a)\nORDER BY a"
    (written,) = local_statements(REPLICATED, Migration(9, (made,)))
    assert (
        "ReplicatedReplacingMergeTree('/headrace/{shard}/{database}/{table}', '{replica}', a)"
    ) in written


def test_a_distributed_table_has_no_sharding_key() -> None:
    address = parse_address("clickhouse://h/headrace?cluster=main&replicated=0")
    assert distribute_tables(address, MIGRATIONS, replace_existing=False)[0] == (
        "CREATE TABLE IF NOT EXISTS `headrace`.`events` AS `headrace_shard`.`events` "
        "ENGINE = Distributed(`main`, `headrace_shard`, `events`)"
    )


def test_statement_that_cannot_run_on_cluster_is_rejected() -> None:
    with pytest.raises(ValueError, match="cannot be run on a cluster: INSERT"):
        local_statements(REPLICATED, Migration(9, ("INSERT INTO `a` SELECT 1",)))
