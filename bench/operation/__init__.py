"""Start, memory, recovery, guarantees and long runs."""
