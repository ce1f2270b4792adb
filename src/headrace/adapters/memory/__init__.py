"""Ports over nothing but memory, for tests."""
