"""The interfaces that the use cases need, as Protocols whose docstrings are contracts."""
