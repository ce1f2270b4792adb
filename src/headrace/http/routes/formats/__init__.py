"""The formats of results: JSON, CSV, Arrow, Parquet and lines of JSON, and SQL as text."""
