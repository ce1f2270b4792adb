"""Fixtures for all tests."""

from tests.chdb_fixture import chdb_engine, chdb_store, chdb_store_of_module
from tests.servers import postgresql, shared_server

__all__ = ["chdb_engine", "chdb_store", "chdb_store_of_module", "postgresql", "shared_server"]
