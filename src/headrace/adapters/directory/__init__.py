"""Websites, keys and organizations, in SQLite or PostgreSQL."""
