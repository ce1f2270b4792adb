"""The server that most tests of the client for Python send to."""

from collections.abc import Iterator

import pytest

from headrace_client.testing import FakeHeadrace


@pytest.fixture
def server() -> Iterator[FakeHeadrace]:
    """A server that has stored nothing."""
    with FakeHeadrace() as fake:
        yield fake
