"""Reads a request before its use case runs: body, credentials, client address, CORS."""
