"""Load generators, and the service that they drive."""
