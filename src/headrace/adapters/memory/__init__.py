"""Implementations of ports in memory, for tests."""
