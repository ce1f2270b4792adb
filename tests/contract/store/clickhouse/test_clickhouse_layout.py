"""The statements for a replicated cluster, as text that a real ClickHouse parses."""

from typing import cast

import pytest

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.clickhouse.address import parse_address
from headrace.adapters.store.clickhouse.layout import (
    create_databases,
    create_version_table,
    distribute_tables,
    local_target,
    system_table,
)
from headrace.adapters.store.dialect.ddl import MIGRATIONS
from headrace.adapters.store.dialect.statements import (
    CreateTable,
    Statement,
    TableEngine,
    render,
)

REPLICATED = parse_address("clickhouse://h/headrace?cluster=main")
TARGET = local_target(REPLICATED)
STATEMENTS = [
    *create_databases(REPLICATED),
    create_version_table(REPLICATED),
    *(render(one, TARGET) for migration in MIGRATIONS for one in migration.statements),
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
    assert chdb_engine.execute(
        f"EXPLAIN AST SELECT is_done FROM {system_table(REPLICATED, 'mutations')}"
    )
    assert system_table(parse_address("clickhouse://h/headrace"), "mutations") == "system.mutations"


def test_replicas_of_a_shard_share_a_path_and_a_deduplication_log() -> None:
    events = render(MIGRATIONS[0].statements[0], TARGET)
    assert events.startswith(
        "CREATE TABLE IF NOT EXISTS `headrace_shard`.`events` ON CLUSTER `main`"
    )
    assert (
        "ENGINE = ReplicatedMergeTree('/headrace/{shard}/{database}/{table}', '{replica}')"
    ) in events
    assert "replicated_deduplication_window = 100000" in events
    assert "non_replicated_deduplication_window" not in events


def test_versions_are_the_same_on_every_node() -> None:
    assert (
        "ReplicatedMergeTree('/headrace/all/{database}/{table}', '{shard}-{replica}')"
    ) in create_version_table(REPLICATED)


def test_table_engine_arguments_are_kept() -> None:
    engine = TableEngine("ReplacingMergeTree", ("a",))
    table = CreateTable(name="t", columns=("`a` UInt8",), engine=engine, order_by="a")
    assert render(table) == (
        "CREATE TABLE IF NOT EXISTS `t`\n(\n    `a` UInt8\n)\n"
        "ENGINE = ReplacingMergeTree(a)\nORDER BY a"
    )
    assert (
        "ReplicatedReplacingMergeTree('/headrace/{shard}/{database}/{table}', '{replica}', a)"
    ) in render(table, TARGET)


def test_a_distributed_table_has_no_sharding_key() -> None:
    address = parse_address("clickhouse://h/headrace?cluster=main&replicated=0")
    assert distribute_tables(address, MIGRATIONS, replace_existing=False)[0] == (
        "CREATE TABLE IF NOT EXISTS `headrace`.`events` AS `headrace_shard`.`events` "
        "ENGINE = Distributed(`main`, `headrace_shard`, `events`)"
    )


def test_statement_of_an_unknown_kind_is_rejected() -> None:
    statement = cast("Statement", "INSERT INTO `a` SELECT 1")  # not permitted by the types
    with pytest.raises(AssertionError, match="INSERT"):
        render(statement, TARGET)
