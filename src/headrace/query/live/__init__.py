"""Live streams: items of a website as they are acknowledged."""
