"""Real browsers for tests, and the pages that they open."""
