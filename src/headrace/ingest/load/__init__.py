"""From durable records of the logs to batches in the store."""
