"""What several machines share, in Valkey or Redis."""
