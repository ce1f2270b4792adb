"""Benchmarks. Each one prints its measurements and the machine they were made on."""
