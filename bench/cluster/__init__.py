"""Benchmarks of several machines that share ClickHouse, PostgreSQL and Valkey."""
