"""Copies rows from one store to another and verifies the copy."""
