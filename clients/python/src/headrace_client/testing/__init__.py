"""A server for the tests of programs that use the client: it keeps items in memory, once each.

with FakeHeadrace() as server, Headrace(server.url, "test-key", outbox=None) as client:
    client.track("signup")
    client.flush()
    assert server.event_names() == ["signup"]
"""

from headrace_client.testing.server import FakeHeadrace, Received

__all__ = ["FakeHeadrace", "Received"]
