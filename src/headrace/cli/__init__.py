"""The headrace command."""
