"""Benchmarks of queries."""
