"""The erasures of a data directory and their key."""
