"""Loads durable records of the logs into the store, in batches."""
