"""An empty directory in each database; the tests bring the `clock` that it reads."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.adapters.directory.sql_directory import SqlDirectory, open_directory
from headrace.base.clock import FixedClock
from testing.servers.shared_state import PostgreSQL


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """The path or URL of an empty database."""
    if request.param == "sqlite":
        return tmp_path / "data" / "directory.sqlite"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def directory(location: str | Path, clock: FixedClock) -> Iterator[SqlDirectory]:
    opened = open_directory(location, clock)
    yield opened
    opened.close()
