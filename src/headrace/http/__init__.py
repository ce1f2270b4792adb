"""HTTP in front of the use cases. The only place that knows the web framework."""
