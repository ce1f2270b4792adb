"""From an outbox on disk to the service: stored once, whatever is killed meanwhile."""
