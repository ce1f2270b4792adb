"""The formats of results: JSON, CSV and Arrow streams."""
