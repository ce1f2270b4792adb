"""The durable log of each worker: segment files, their writer and their reader."""
