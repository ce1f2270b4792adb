"""Deletes expired rows for good, and describes what is stored of each website."""
