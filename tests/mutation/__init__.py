"""Wrong versions of the query engine, and what notices each of them."""
