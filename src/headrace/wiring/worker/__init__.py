"""Builds and runs a worker: the process that serves HTTP."""
