"""From the bytes of a query to a plan in which every name and value is known to be valid."""
