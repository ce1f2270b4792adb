"""The local socket between workers and the engine process."""
