"""Finds the end of a chunked body, and its content."""

import re
from enum import Enum
from typing import Final

from httptools import HttpParserError

MAX_LINE_BYTES: Final = 8_192
"""Bytes of a line between chunks: a size with its extensions, or a field of the trailer."""

MAX_ANNOTATION_BYTES: Final = 65_536
"""Bytes of all chunk extensions and trailer fields of a body, which are read and dropped."""

_LINE_END: Final = b"\r\n"
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_TEXT: Final = rb"\t\x20-\x7e\x80-\xff"
_TEXT_WITHOUT_QUOTE_OR_BACKSLASH: Final = rb"\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff"
_BLANKS: Final = b" \t"
_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,16}+")
# One at a time: Python before 3.11.5 matches repeated possessive groups wrongly, and without them
# a long line takes quadratic time.
_EXTENSION: Final = re.compile(
    rb"[ \t]*+;[ \t]*+%(token)b"
    rb'(?:[ \t]*+=[ \t]*+(?:%(token)b|"[%(plain)b]*+(?:\\[%(text)b][%(plain)b]*+)*"))?'
    % {b"token": _TOKEN, b"text": _TEXT, b"plain": _TEXT_WITHOUT_QUOTE_OR_BACKSLASH}
)
_TRAILER_FIELD: Final = re.compile(rb"%b:[%b]*+" % (_TOKEN, _TEXT))


class _Expected(Enum):
    SIZE = "size"
    CONTENT = "content"
    CONTENT_END = "content end"
    TRAILER = "trailer"


class ChunkedBody:
    """A chunked body (RFC 9112, section 7.1). Extensions and trailer are checked and dropped."""

    __slots__ = ("_annotation_bytes", "_expected", "_line", "_remaining", "is_complete")

    def __init__(self) -> None:
        self._expected = _Expected.SIZE
        self._remaining = 0  # of the chunk
        self._line = b""  # the part that has arrived of a line between chunks
        self._annotation_bytes = 0
        self.is_complete = False

    def feed(self, data: bytes, position: int) -> tuple[int, bytes]:
        """Return where the body's part of a chunk of the connection ends, and its content.

        Raises `HttpParserError` for malformed framing.
        """
        content: list[bytes] = []
        while position < len(data) and not self.is_complete:
            if self._expected is _Expected.CONTENT:
                part = data[position : position + self._remaining]
                content.append(part)
                position += len(part)
                self._remaining -= len(part)
                if not self._remaining:
                    self._expected = _Expected.CONTENT_END
            else:
                position = self._feed_line(data, position)
        return position, b"".join(content)

    def _feed_line(self, data: bytes, position: int) -> int:
        if self._line.endswith(b"\r") and data.startswith(b"\n", position):
            end = position + 1
        else:
            at = data.find(_LINE_END, position)
            end = at + len(_LINE_END) if at >= 0 else len(data)
        line = self._line + data[position:end]
        if len(line) > MAX_LINE_BYTES:
            raise HttpParserError("a line between chunks is too long")
        if line.endswith(_LINE_END):
            self._line = b""
            self._take_line(line.removesuffix(_LINE_END))
        else:
            self._line = line
        return end

    def _take_line(self, line: bytes) -> None:
        match self._expected:
            case _Expected.SIZE:
                self._take_size(line)
            case _Expected.TRAILER:
                self._take_trailer_field(line)
            case _:
                if line:
                    raise HttpParserError("a chunk is longer than its size")
                self._expected = _Expected.SIZE

    def _take_size(self, line: bytes) -> None:
        size = _SIZE.match(line)
        if size is None:
            raise HttpParserError("invalid chunk size")
        if size.end() != len(line):
            self._count_annotation(len(line) - size.end())
            _check_extensions(line, size.end())
        self._remaining = int(size[0], 16)
        self._expected = _Expected.CONTENT if self._remaining else _Expected.TRAILER

    def _take_trailer_field(self, line: bytes) -> None:
        if not line:
            self.is_complete = True
            return
        self._count_annotation(len(line))
        if _TRAILER_FIELD.fullmatch(line) is None:
            raise HttpParserError("invalid trailer field")

    def _count_annotation(self, size: int) -> None:
        self._annotation_bytes += size
        if self._annotation_bytes > MAX_ANNOTATION_BYTES:
            raise HttpParserError("too many chunk extensions or trailer fields")


def _check_extensions(line: bytes, position: int) -> None:
    while (extension := _EXTENSION.match(line, position)) is not None:
        position = extension.end()
    if line[position:].strip(_BLANKS):
        raise HttpParserError("invalid chunk extension")
