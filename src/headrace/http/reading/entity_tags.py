"""Which entity tags a client has already."""

from headrace.http.request import Request


def has_entity_tag(request: Request, tag: bytes) -> bool:
    """Return whether If-None-Match has a tag, by weak comparison (RFC 9110, section 13.1.2)."""
    opaque = tag.removeprefix(b"W/")
    sent = b",".join(request.header_values(b"if-none-match")).split(b",")
    return any(one.strip().removeprefix(b"W/") in (opaque, b"*") for one in sent)
