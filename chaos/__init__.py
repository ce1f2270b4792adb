"""The crash test: a real service under load is broken at random moments, then held to its word."""
