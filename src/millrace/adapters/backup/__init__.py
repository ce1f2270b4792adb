"""Snapshots of a data directory, and the one file that is made of them."""
