"""Snapshots of a data directory, the file that is made of one, and what must hold in both."""
