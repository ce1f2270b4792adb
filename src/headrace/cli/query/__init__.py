"""The command `headrace query`."""
