"""The millrace command."""
