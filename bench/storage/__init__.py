"""Benchmarks of the event log, the ledger, Arrow streams and daily rollups in isolation."""
