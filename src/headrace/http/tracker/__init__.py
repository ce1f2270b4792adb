"""The browser tracker as it is built from `clients/browser`, and how to read its files."""
