"""Wiring of the engine process."""
