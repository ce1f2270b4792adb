"""The files that imports read and write."""
