"""From the bytes of a request to an acknowledged record of the durable log."""
