"""Conditions of a query: the filters of rows, and the conditions for the rows of a result."""
