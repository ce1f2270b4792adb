"""The durable log of each worker, as plain segment files."""
