"""What the reference says of each endpoint: one module for each group of endpoints."""
