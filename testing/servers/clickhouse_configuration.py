"""The configuration of ClickHouse servers for tests: clusters, replicas, and the guide's users."""

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

CLUSTER = "shards"
WRITER, WRITER_PASSWORD = "headrace_writer", "w@it/for:it?"
READER, READER_PASSWORD = "headrace_reader", "re%d & #1"

_GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "clickhouse.md"
_SQL_BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSION_TIMEOUT_MS = 10_000


class Node(Protocol):
    """The addresses of a server."""

    @property
    def host(self) -> str:
        """The address for clients and for other shards."""
        ...

    @property
    def native_port(self) -> int:
        """The port of the native protocol."""
        ...

    @property
    def interserver_host(self) -> str:
        """The address for other replicas."""
        ...

    @property
    def interserver_port(self) -> int:
        """The port for other replicas."""
        ...


def shards_xml(users: Path, shards: Sequence[Sequence[Node]], *, additions: str = "") -> str:
    """Return the configuration of the servers of a cluster, by shard and replica."""
    return (
        f"<clickhouse><users_config>{users}</users_config>{additions}<remote_servers><{CLUSTER}>"
        f"<secret>between the shards</secret>{''.join(map(_shard, shards))}"
        f"</{CLUSTER}></remote_servers></clickhouse>"
    )


def replica_xml(
    users: Path, shards: Sequence[Sequence[Node]], *, node: Node, keeper: str, is_official: bool
) -> str:
    """Return the configuration of one server of a replicated cluster.

    `keeper` is HOST:PORT. Each server has its own path for the names of its sessions.
    """
    ((shard, replica),) = (
        (number, f"r{position}")
        for number, replicas in enumerate(shards, start=1)
        for position, each in enumerate(replicas, start=1)
        if each is node
    )
    host, port = keeper.rsplit(":", 1)
    additions = (
        f"<listen_host>{node.host}</listen_host><listen_host>{node.interserver_host}</listen_host>"
        f"<zookeeper><node><host>{host}</host><port>{port}</port></node>"
        f"<session_timeout_ms>{_SESSION_TIMEOUT_MS}</session_timeout_ms>"
        f"<sessions_path>/clickhouse/sessions/{shard}-{replica}</sessions_path></zookeeper>"
        f"<macros><shard>{shard}</shard><replica>{replica}</replica></macros>"
        "<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>"
    )
    if is_official:
        additions += (
            f"<interserver_http_host>{node.interserver_host}</interserver_http_host>"
            f"<interserver_http_port>{node.interserver_port}</interserver_http_port>"
        )
    return shards_xml(users, shards, additions=additions)


def users_xml(*, replicated: bool = False, networks: Sequence[str] = ("127.0.0.1",)) -> str:
    """Return the two users of the guide, and the server's own user, for clients in `networks`."""
    from_where = "".join(f"<ip>{network}</ip>" for network in networks)

    def user(name: str, password: str, profile: str, grants: str) -> str:
        digest = sha256(password.encode()).hexdigest()
        return (
            f"<{name}><password_sha256_hex>{digest}</password_sha256_hex>"
            f"<profile>{profile}</profile><networks>{from_where}</networks>"
            f"<quota>default</quota>{grants}</{name}>"
        )

    return f"""<clickhouse>
<profiles><default/><reader><readonly>2</readonly></reader></profiles>
<quotas><default/></quotas>
<users>
{user("default", "", "default", "")}
{user(WRITER, WRITER_PASSWORD, "default", _grants(WRITER, replicated=replicated))}
{user(READER, READER_PASSWORD, "reader", _grants(READER, replicated=replicated))}
</users></clickhouse>"""


def _shard(replicas: Sequence[Node]) -> str:
    nodes = "".join(
        f"<replica><host>{node.host}</host><port>{node.native_port}</port></replica>"
        for node in replicas
    )
    return f"<shard><internal_replication>true</internal_replication>{nodes}</shard>"


def _grants(user: str, *, replicated: bool) -> str:
    """Return the grants that the guide gives a user, on the databases of tests.

    The guide's first block is for all servers, its second one for those with replicas.
    """
    statements = "".join(_SQL_BLOCK.findall(_GUIDE.read_text())[: 2 if replicated else 1])
    rights = re.findall(rf"^(GRANT .+) TO {user};$", statements, re.MULTILINE)
    assert rights, f"the guide gives no rights to {user}"
    queries = (re.sub(r"ON headrace(?:_shard)?\.\*", "ON test_*.*", right) for right in rights)
    return "<grants>" + "".join(f"<query>{query}</query>" for query in queries) + "</grants>"
