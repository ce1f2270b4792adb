"""Frozen data: what was sent, what is meant, what can be asked. No I/O."""
