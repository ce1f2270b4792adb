"""OpenAPI and the reference documentation, generated from the tables of the code."""
