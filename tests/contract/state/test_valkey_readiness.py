"""A shared server that replies and takes no writes is not ready: queries cannot be counted."""

import asyncio

import pytest

from headrace.base.errors import SharedStateUnavailable
from testing.servers.shared_state import ValkeyServer


def is_ready(server: ValkeyServer) -> bool:
    async def run() -> bool:
        client = server.connections()
        try:
            return await client.is_ready()
        finally:
            await client.close()

    return asyncio.run(run())


@pytest.mark.parametrize("option", ["maxmemory", "min-replicas-to-write"])
def test_a_server_that_takes_no_writes_is_not_ready(
    option: str, valkey_server: ValkeyServer
) -> None:
    valkey_server.empty()
    assert is_ready(valkey_server)
    valkey_server.configure(option, "1")
    try:
        with pytest.raises(SharedStateUnavailable):
            valkey_server.put("any", "value")
        assert not is_ready(valkey_server)
    finally:
        valkey_server.configure(option, "0")
    assert is_ready(valkey_server)
    assert valkey_server.names() == []
