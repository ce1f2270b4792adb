"""Frozen data types of requests, log records, queries and tenants. No I/O, no SQL."""
