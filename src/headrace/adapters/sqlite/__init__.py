"""What one machine remembers of what came before, in SQLite files."""
