"""The use case of values: which values a column has, the most frequent ones first."""
