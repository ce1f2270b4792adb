"""Data sets of millions of realistic events."""
