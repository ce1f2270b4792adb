"""Connections after a failover: the server's name leads to a promoted replica."""

import asyncio
from collections.abc import Iterator

import pytest

from headrace.adapters.valkey.client import PREFIX, AsyncValkeyClient, Script, ValkeyClient
from headrace.adapters.valkey.rate_limiter import ValkeyRateLimiter
from headrace.base.clock import SystemClock
from headrace.base.errors import SharedStateUnavailable
from testing.servers.forwarding import Forwarder
from testing.servers.shared_state import ValkeyServer

PUT = Script("redis.call('SET', KEYS[1], ARGV[1]) return true")


def url_of(name: Forwarder) -> str:
    return f"valkey://127.0.0.1:{name.port}"


@pytest.fixture
def name(valkey_server: ValkeyServer) -> Iterator[Forwarder]:
    made = Forwarder(valkey_server.port)
    yield made
    made.close()


@pytest.fixture
def promoted(valkey_server: ValkeyServer) -> Iterator[ValkeyServer]:
    """Another server; the first one is its replica until the test ends, once it follows it."""
    other = ValkeyServer(valkey_server.program)
    other.server.start()
    yield other
    valkey_server.follow(None)
    other.server.remove()


def test_the_client_of_a_thread_follows_the_name_to_the_promoted_server(
    valkey_server: ValkeyServer, promoted: ValkeyServer, name: Forwarder
) -> None:
    client = ValkeyClient(url_of(name))
    client.run(PUT, ["before"], ["1"])
    valkey_server.follow(promoted)
    with pytest.raises(SharedStateUnavailable, match="read only replica"):
        client.run(PUT, ["meanwhile"], ["1"])
    name.leads_to = promoted.port
    client.run(PUT, ["run"], ["1"])
    client.execute("SET", "executed", "1")
    assert sorted(promoted.names()) == [b"executed", b"run"]
    client.close()


async def get_salt(_now_ms: int) -> bytes:
    return bytes(32)


def test_the_connections_of_an_event_loop_follow_the_name_to_the_promoted_server(
    valkey_server: ValkeyServer, promoted: ValkeyServer, name: Forwarder
) -> None:
    async def run() -> None:
        client = AsyncValkeyClient(url_of(name), timeout_s=60)
        limiter = ValkeyRateLimiter(client, 9, get_salt=get_salt, clock=SystemClock())
        await client.run(PUT, ["before"], ["1"])
        assert await client.is_ready()
        valkey_server.follow(promoted)
        assert not await client.is_ready()
        name.leads_to = promoted.port
        assert (await limiter.hit("key:one")).remaining == 8
        await client.run(PUT, ["run"], ["1"])
        assert await client.is_ready()
        await client.close()

    asyncio.run(run())
    found = sorted(promoted.names())
    assert (len(found), found[-1], found[0].startswith(PREFIX.encode())) == (2, b"run", True)
