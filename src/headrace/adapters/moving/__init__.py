"""The move of all rows from one store to another."""
