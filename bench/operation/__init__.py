"""Benchmarks of startup, memory, recovery, guarantees and long runs."""
