"""The supervisor of `headrace serve`, and the part of it that runs in its children."""
