"""The use case of the schema: what a query may contain, and what is there of one website."""
