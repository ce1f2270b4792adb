"""Imports: from the lines of files to records of the log."""
