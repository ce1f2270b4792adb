"""The configuration and the users of deploy/clickhouse work on a real server.

The users have the grants that Headrace needs, and no others.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import requests

from testing.servers.clickhouse import ClickHouseServer
from testing.servers.clickhouse_programs import clickhouse_program
from tests.e2e.conftest import ServiceMaker

pytestmark = [pytest.mark.clickhouse, pytest.mark.slow]

DEPLOY = Path(__file__).parents[3] / "deploy" / "clickhouse"
USERS = DEPLOY / "users.d" / "headrace.xml"
COUNT = {"table": "events", "selects": [{"field": "*", "aggregate": "count", "alias": "n"}]}
BASE_USERS = """<clickhouse>
<profiles><default/></profiles>
<users><default><password/><profile>default</profile><quota>default</quota>
<networks><ip>127.0.0.1</ip></networks></default></users>
<quotas><default/></quotas>
</clickhouse>"""


def users_of_one_server() -> str:
    """Return the users file for a single server; keep the default user for queries of the test."""
    text = USERS.read_text()
    text = re.sub(r"^\s*<default remove.*\n", "", text, flags=re.MULTILINE)
    text = text.replace("ENGINE ON Replicated", "ENGINE ON ")

    def password(found: re.Match[str]) -> str:
        digest = sha256(found[1].encode()).hexdigest()
        return f"<password_sha256_hex>{digest}</password_sha256_hex>"

    return re.sub(r'<password_sha256_hex from_env="(\w+)"/>', password, text)


@pytest.fixture
def server() -> Iterator[ClickHouseServer]:
    with tempfile.TemporaryDirectory(prefix="headrace-users-") as name:
        home = Path(name)
        (home / "users.xml").write_text(BASE_USERS)
        (home / "users.d").mkdir()
        (home / "users.d" / "headrace.xml").write_text(users_of_one_server())
        configuration = home / "config.xml"
        configuration.write_text(
            f"<clickhouse><users_config>{home}/users.xml</users_config></clickhouse>"
        )
        running = ClickHouseServer(clickhouse_program(), configuration)
        try:
            running.start()
            yield running
        finally:
            running.remove()


def url_of(server: ClickHouseServer, user: str, variable: str) -> str:
    return f"clickhouse://{user}:{variable}@127.0.0.1:{server.port}/headrace"


def rejection(server: ClickHouseServer, user: str, variable: str, statement: str) -> str:
    """Run a statement that the server must reject, and return the reason."""
    response = requests.post(
        f"http://127.0.0.1:{server.port}/",
        data=statement.encode(),
        auth=(user, variable),
        proxies={"http": ""},
        timeout=30,
    )
    assert response.status_code != 200, response.text
    return response.text


def test_deployed_users_have_exactly_the_needed_grants(
    server: ClickHouseServer, dedicated_service: ServiceMaker
) -> None:
    writer = ("headrace_writer", "CLICKHOUSE_WRITER_SHA256")
    reader = ("headrace_reader", "CLICKHOUSE_READER_SHA256")
    service = dedicated_service(
        settings={
            "HEADRACE_CLICKHOUSE_URL": url_of(server, *writer),
            "HEADRACE_CLICKHOUSE_READER_URL": url_of(server, *reader),
        }
    ).start()
    website = service.website()
    assert service.post(f"/track?website_id={website}", [{"name": "a"}] * 3).status_code == 200
    assert service.answer(website, COUNT) == [{"n": 3}]
    assert service.count(website, "sessions") == 0
    server.execute("CREATE DATABASE other")
    server.execute("CREATE TABLE other.secret (n Int8) ENGINE = MergeTree ORDER BY n")
    output = [
        rejection(server, *reader, "INSERT INTO headrace.events (event_name) VALUES ('b')"),
        rejection(server, *reader, "DROP TABLE headrace.events"),
        rejection(server, *reader, "SELECT * FROM other.secret"),
        rejection(server, *writer, "SELECT * FROM other.secret"),
        rejection(server, *writer, "CREATE USER somebody"),
    ]
    assert [re.search(r"ACCESS_DENIED|READONLY", text) is not None for text in output] == [True] * 5


@pytest.fixture
def configured() -> Iterator[ClickHouseServer]:
    """A server with the unchanged configuration of the cluster; it reaches no other host."""
    with tempfile.TemporaryDirectory(prefix="headrace-configured-") as name:
        home = Path(name)
        (home / "users.xml").write_text(BASE_USERS)
        (home / "config.d").mkdir()
        shutil.copy(DEPLOY / "config.d" / "cluster.xml", home / "config.d")
        (home / "config.xml").write_text(
            f"<clickhouse><users_config>{home}/users.xml</users_config></clickhouse>"
        )
        output = {"SHARD": "2", "REPLICA": "2a", "CLUSTER_SECRET": "between the shards"}
        running = ClickHouseServer(
            clickhouse_program(),
            home / "config.xml",
            environment={f"CLICKHOUSE_{key}": value for key, value in output.items()},
        )
        try:
            running.start()
            yield running
        finally:
            running.remove()


def test_cluster_configuration_takes_effect(configured: ClickHouseServer) -> None:
    nodes = (
        "SELECT shard_num, replica_num, host_name, port, internal_replication "
        "FROM system.clusters WHERE cluster = 'headrace' FORMAT CSV"
    )
    assert configured.execute(nodes).splitlines() == [
        '1,1,"clickhouse-1a",9000,1',
        '1,2,"clickhouse-1b",9000,1',
        '2,1,"clickhouse-2a",9000,1',
        '2,2,"clickhouse-2b",9000,1',
    ]
    macros = "SELECT macro || '=' || substitution FROM system.macros ORDER BY macro FORMAT TSV"
    assert configured.execute(macros).split() == ["cluster=headrace", "replica=2a", "shard=2"]
    flushed = (
        "SELECT count() FROM system.merge_tree_settings WHERE value = '1' "
        "AND name IN ('fsync_after_insert', 'fsync_part_directory')"
    )
    assert configured.execute(flushed) == "2\n"
