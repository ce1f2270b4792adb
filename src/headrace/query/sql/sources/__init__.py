"""What a statement selects from: stored tables, daily rollups, and the rows of them that may be read."""
