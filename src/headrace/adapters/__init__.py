"""The ports over real things: files, SQLite, chDB, geo and User-Agent databases."""
