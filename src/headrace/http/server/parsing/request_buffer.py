"""Buffers the request that the parser is reading, for as long as it may take the fast path."""

from headrace.http.server.parsing.cached_heads import CachedHead


class RequestBuffer:
    """The parts of a request before it goes to the fast path, or back to uvicorn."""

    __slots__ = ("_raw_head", "body", "chunk_head", "head")

    def __init__(self) -> None:
        self.head: CachedHead | None = None
        """The parsed head of the buffered request; None while no request is buffered."""
        self.body = b""
        self.chunk_head = b""
        """The head that starts the current chunk, until the parser starts a message with it."""
        self._raw_head = b""

    def start_message(self) -> None:
        """Assign the head of the chunk to the message that the parser starts."""
        self._raw_head, self.chunk_head = self.chunk_head, b""

    def cacheable_head(self) -> bytes | None:
        """Return the bytes of the head if no parser can end it anywhere but where it ended.

        With bare line ends, or with empty lines before it, the first empty line of the chunk is
        not the end of the head.
        """
        raw = self._raw_head
        has_bare_line_end = raw.count(b"\n") != raw.count(b"\r\n")
        return raw if raw.startswith(b"POST ") and not has_bare_line_end else None
