"""Exports to files."""
