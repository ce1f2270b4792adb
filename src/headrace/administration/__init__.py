"""The use cases of administration: who may do it, and what it changes."""
