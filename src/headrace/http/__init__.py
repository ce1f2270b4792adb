"""HTTP in front of the use cases. The only package that imports the web framework."""
