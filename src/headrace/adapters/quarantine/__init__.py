"""What the store refused, as files that people can read."""
