"""Snapshots of a data directory, backup files made of them, and consistency checks."""
