"""Erases rows of a website wherever they are: the use case, without any I/O of its own."""
