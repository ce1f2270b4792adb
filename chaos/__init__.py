"""Crash test: injects random faults into a real service under load and checks its guarantees."""
