"""The endpoints: each reads a request, calls one use case and encodes the response."""
