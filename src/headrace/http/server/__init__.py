"""The HTTP/1.1 server of a worker: connections, their limits, and the fast path of ingestion."""
