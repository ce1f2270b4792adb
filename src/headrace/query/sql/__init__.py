"""Compile a plan to the text of one statement and its bound parameters."""
