"""The coordination service of replicated ClickHouse servers: ClickHouse Keeper, or ZooKeeper."""

import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from testing.servers.clickhouse_programs import ClickHouseProgram
from testing.servers.ports import free_port
from testing.servers.shared_state import Server

_ZOOKEEPER = """\
tickTime=2000
dataDir={home}/data
clientPort={port}
clientPortAddress={host}
admin.enableServer=false
maxClientCnxns=0
forceSync=no
4lw.commands.whitelist=ruok
"""
_CLICKHOUSE_KEEPER = """\
<clickhouse>
<logger><level>warning</level><console>1</console></logger>
<listen_host>{host}</listen_host>
<keeper_server>
<tcp_port>{port}</tcp_port><server_id>1</server_id>
<log_storage_path>{home}/data/log</log_storage_path>
<snapshot_storage_path>{home}/data/snapshots</snapshot_storage_path>
<raft_configuration>
<server><id>1</id><hostname>{host}</hostname><port>{raft_port}</port></server>
</raft_configuration>
</keeper_server>
</clickhouse>
"""
_TIMEOUT_S = 2.0


class Keeper:
    """One node. `server` can be killed, stopped and started again on its data."""

    def __init__(
        self, program: ClickHouseProgram, *, host: str = "127.0.0.1", prefix: Sequence[str] = ()
    ) -> None:
        self.host = host
        self.port = free_port()
        home = Path(tempfile.mkdtemp(prefix="headrace-keeper-"))
        configuration = home / "keeper.xml"
        template = _CLICKHOUSE_KEEPER if program.is_official else _ZOOKEEPER
        configuration.write_text(
            template.format(host=host, port=self.port, home=home, raft_port=free_port())
        )
        command = [*prefix, *program.keeper_command(configuration)]
        self.server = Server(command, self._is_up, home)

    def _is_up(self) -> bool:
        with (
            suppress(OSError),
            socket.create_connection((self.host, self.port), _TIMEOUT_S) as node,
        ):
            node.sendall(b"ruok")
            return node.recv(16) == b"imok"
        return False
