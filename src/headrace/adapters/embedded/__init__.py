"""The column store within the engine process."""
