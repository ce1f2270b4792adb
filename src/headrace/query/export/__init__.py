"""The export use case: a request → chunks at one watermark → the bytes of one file."""
