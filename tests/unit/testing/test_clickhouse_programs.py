"""The commands and the configuration with which tests run the official ClickHouse binary."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from testing.servers.clickhouse import ClickHouseServer
from testing.servers.clickhouse_programs import (
    ENDS_WITH_ITS_STARTER,
    OfficialBinary,
    clickhouse_program,
)
from testing.servers.keeper import Keeper
from testing.servers.replicas import REPLICAS, SHARDS, ReplicatedServers

BINARY = "/opt/clickhouse"


@pytest.fixture
def program() -> OfficialBinary:
    return OfficialBinary(Path(BINARY))


def texts(configuration: Path, path: str) -> list[str | None]:
    """Return the texts of all elements at a path of a configuration file."""
    return [element.text for element in ET.parse(configuration).getroot().findall(path)]  # noqa: S314 - our own file


def test_binary_that_the_environment_names_is_run(tmp_path: Path) -> None:
    binary = tmp_path / "clickhouse"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o700)
    named = clickhouse_program({"HEADRACE_TEST_CLICKHOUSE": str(binary)})
    assert named.is_official
    assert named.keeper_command(Path("/k.xml")) == [
        *ENDS_WITH_ITS_STARTER,
        *(str(binary), "keeper", "--config-file=/k.xml"),
    ]


def test_name_of_no_binary_fails_instead_of_taking_the_library() -> None:
    with pytest.raises(AssertionError, match="names no program: /nowhere/clickhouse"):
        clickhouse_program({"HEADRACE_TEST_CLICKHOUSE": "/nowhere/clickhouse"})


@pytest.mark.parametrize(
    ("interserver_host", "listening"),
    [
        pytest.param("", ["--listen_host=127.0.0.1"], id="a single server"),
        pytest.param("127.0.0.2", [], id="a replica, whose configuration has the hosts"),
    ],
)
def test_server_has_its_own_directory_and_ports(
    program: OfficialBinary, interserver_host: str, listening: list[str]
) -> None:
    server = ClickHouseServer(program, Path("/c.xml"), interserver_host=interserver_host)
    try:
        assert program.server_command(server) == [
            *ENDS_WITH_ITS_STARTER,
            *(BINARY, "server", "--config-file=/c.xml", "--"),
            f"--path={server.data}",
            f"--http_port={server.port}",
            f"--tcp_port={server.native_port}",
            *listening,
        ]
    finally:
        server.remove()


def test_replicas_have_an_interserver_port_of_their_own_and_clickhouse_keeper(
    program: OfficialBinary,
) -> None:
    servers = [
        ClickHouseServer(program, interserver_host="127.0.0.2") for _ in range(SHARDS * REPLICAS)
    ]
    keeper = Keeper(program)
    cluster = ReplicatedServers(program, servers, keeper)
    try:
        for server in servers:
            file = server.configuration
            assert texts(file, "interserver_http_port") == [str(server.interserver_port)]
            assert texts(file, "interserver_http_host") == ["127.0.0.2"]
            assert texts(file, "listen_host") == ["127.0.0.1", "127.0.0.2"]
            assert texts(file, "zookeeper/node/port") == [str(keeper.port)]
            assert len(texts(file, "remote_servers/shards/shard/replica")) == SHARDS * REPLICAS
        ports = [(each.port, each.native_port, each.interserver_port) for each in servers]
        assert len({port for triple in ports for port in triple}) == 3 * len(servers)
        settings = keeper.server.home / "keeper.xml"
        assert texts(settings, "keeper_server/tcp_port") == [str(keeper.port)]
        assert texts(settings, "keeper_server/raft_configuration/server/id") == texts(
            settings, "keeper_server/server_id"
        )
    finally:
        cluster.remove()
