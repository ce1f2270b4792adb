"""Where a chunked body ends, and what of it is content."""

import pytest
from httptools import HttpParserError

from headrace.http.server.parsing.chunked_body import (
    MAX_ANNOTATION_BYTES,
    MAX_LINE_BYTES,
    ChunkedBody,
)

NEXT = b"POST /track HTTP/1.1\r\n"


def read(body: ChunkedBody, *chunks: bytes) -> tuple[bytes, bytes]:
    """Feed chunks of a connection; return the content, and the bytes behind the body."""
    content = rest = b""
    for chunk in chunks:
        if body.is_complete:
            rest += chunk
            continue
        position, part = body.feed(chunk, 0)
        content += part
        rest += chunk[position:]
    assert body.is_complete
    return content, rest


CHUNKED: dict[str, bytes] = {
    "one chunk": b"2\r\n{}\r\n0\r\n\r\n",
    "a chunk for each byte": b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
    "a size with zeros": b"0002\r\n{}\r\n000\r\n\r\n",
    "an extension": b'2;a=b;c;d="e\\"; \xff"\r\n{}\r\n0;f\r\n\r\n',
    "blanks around extensions": b"2 ; a = b\t;\tc \r\n{}\r\n0 ; d \r\n\r\n",
    "a trailer": b"2\r\n{}\r\n0\r\nContent-Length: 7\r\nX-Empty:\r\n\r\n",
    "line ends as content": b"1\r\n{\r\n0001\r\n}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("body", CHUNKED.values(), ids=list(CHUNKED))
def test_chunked_body_is_its_content_wherever_it_is_split(body: bytes) -> None:
    sent = body + NEXT
    assert read(ChunkedBody(), sent) == (b"{}", NEXT)
    assert read(ChunkedBody(), *(bytes([byte]) for byte in sent)) == (b"{}", NEXT)
    for at in range(1, len(sent)):
        assert read(ChunkedBody(), sent[:at], sent[at:]) == (b"{}", NEXT)


MALFORMED: dict[str, bytes] = {
    "no size": b"\r\n",
    "no hexadecimal size": b"zz\r\n",
    "a sign": b"+2\r\n{}\r\n",
    "a prefix": b"0x2\r\n{}\r\n",
    "a blank before the size": b" 2\r\n{}\r\n",
    "a size of 17 digits": b"00000000000000002\r\n{}\r\n",
    "a size without a semicolon": b"2 a\r\n{}\r\n",
    "an extension without a name": b"2;=a\r\n{}\r\n",
    "an open quote": b'2;a="b\r\n{}\r\n',
    "a control character in an extension": b"2;a=\x01\r\n{}\r\n",
    "a bare line end": b"2\n{}\r\n0\r\n\r\n",
    "a longer chunk": b"2\r\n{}}\r\n0\r\n\r\n",
    "a trailer field without a colon": b"0\r\nx\r\n\r\n",
    "a folded trailer field": b"0\r\nx: y\r\n z\r\n\r\n",
    "a NUL in a trailer": b"0\r\nx: \x00\r\n\r\n",
    "a bare line end in a trailer": b"0\r\nx: y\nz: a\r\n\r\n",
    "a line that is too long": b"2;" + b"a" * MAX_LINE_BYTES + b"\r\n",
    "an endless line": b"2;" + b"a" * (MAX_LINE_BYTES + 1),
    "too many extensions": (b"1;%b\r\n{\r\n" % (b"a" * 4_000))
    * (MAX_ANNOTATION_BYTES // 4_000 + 1),
    "too long a trailer": b"0\r\n" + b"x: yyyyy\r\n" * (MAX_ANNOTATION_BYTES // 8 + 1),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=list(MALFORMED))
def test_malformed_chunks_are_refused(body: bytes) -> None:
    with pytest.raises(HttpParserError):
        ChunkedBody().feed(body, 0)


def test_long_extensions_are_read_in_linear_time() -> None:
    with pytest.raises(HttpParserError):
        ChunkedBody().feed(b"1" + b";a=a" * 2_000 + b"\x00\r\n", 0)
    with pytest.raises(HttpParserError):
        ChunkedBody().feed(b'1;a="' + b"\\a" * 4_000 + b"\r\n", 0)
