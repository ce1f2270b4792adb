"""What a statement selects from: stored tables, daily rollups, and which of their rows."""
