"""State that several machines share, in Valkey or Redis."""
