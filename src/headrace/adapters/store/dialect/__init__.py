"""What both stores share: the table layout, bound parameters, results and error codes."""
