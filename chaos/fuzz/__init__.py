"""Fuzzing: sends mutated requests to a real service, as bytes, and looks for failures of it."""
