"""Decode and validate a query: from the bytes of a body to a plan of valid names and values."""
