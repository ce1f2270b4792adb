"""The data directory: its paths, format and lock, and the runtime directory of a service."""
