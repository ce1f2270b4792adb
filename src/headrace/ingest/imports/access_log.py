"""Decodes the access logs of web servers, in the common and the combined format."""

import ipaddress
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from hashlib import blake2b
from typing import Any, Final

from headrace.ingest.imports.decoder import InvalidLine, decode_lines
from headrace.ingest.imports.mapped_events import PAGE_VIEW, MappedEvent, to_item
from headrace.ingest.imports.visitors import FindVisitor
from headrace.ingest.receive.decoding.body_scan import is_utf8
from headrace.ingest.receive.decoding.validation_errors import INVALID_CHARACTER
from headrace.ingest.receive.enrich import MAX_USER_AGENT_LENGTH, make_visitor_id
from headrace.model.imports import DecodedChunk, ImportItem, LineChunk

ASSET: Final = "asset"
NOT_A_LOG_LINE = "it is no line of an access log in the common or combined format"
VIRTUAL_HOST = "it begins with a virtual host: import the lines of one host, without this field"
FIELDS_BEFORE = "other fields stand before the address, as those of syslog: remove them"

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    # Where a server logs X-Forwarded-For, the addresses of proxies follow that of the visitor.
    r"(?P<address>[^\s,]+)(?:, ?[^\s,]+)* (?P<names>\S+ .*?)\[(?P<time>[^\]]{20,40})\] "
    rf"{_QUOTED.replace('(', '(?P<request>', 1)} (?P<status>[0-9]{{3}}) "
    r"(?P<bytes>[0-9]{1,18}|-)(?![^ ])"
    rf"(?: {_QUOTED.replace('(', '(?P<referrer>', 1)} {_QUOTED.replace('(', '(?P<agent>', 1)}"
    r'|(?! "))'  # a line that is cut off in these fields is none of the common format
)
_TIME = re.compile(
    r"([0-9]{2})/([A-Z][a-z]{2})/([0-9]{4}):([0-9]{2}):([0-9]{2}):([0-9]{2}) "
    r"([+-])([0-9]{2})([0-9]{2})"
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPES: Mapping[str, str] = {
    '"': '"',
    "\\": "\\",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_PAGE_METHODS = frozenset({"GET", "HEAD"})
_PAGE_ENDINGS = frozenset({"html", "xhtml", "htm", "php"})
_FIRST_ERROR: Final = 400
_MISSING: Final = "-"
_NO_NAMES: Final = "- - "

MAX_LOG_LINE_BYTES: Final = 64 * 1024
"""Servers limit request lines and headers to a fraction of it."""

MAX_COUNTED_LINES: Final = 1 << 20
"""Equal lines are counted among so many different ones before them: they have one second in common,
so they are close to each other, and memory does not depend on the length of the file."""


class AccessLogDecoder:
    """Decodes one import. `salt` makes its visitor ids, and is forgotten with it."""

    def __init__(
        self, website_id: str, find_visitor: FindVisitor, *, salt: bytes, takes_assets: bool
    ) -> None:
        self._website_id = website_id
        self._find_visitor = find_visitor
        self._salt = salt
        self._takes_assets = takes_assets
        self._counts: dict[bytes, int] = {}

    def decode(self, chunk: LineChunk, *, now_ms: int) -> DecodedChunk:
        """Return the items of a chunk; see `ChunkDecoder`. What is no page is skipped."""
        if chunk.first_line == 1:
            self._counts = {}
        return decode_lines(chunk, lambda line: self._item(line.rstrip(b"\r"), now_ms))

    def _item(self, line: bytes, now_ms: int) -> ImportItem | None:
        event = self._event(line)
        return None if event is None else to_item(event, self._website_id, now_ms=now_ms)

    def _event(self, line: bytes) -> MappedEvent | None:
        """Return the event of a line, None for one that is no page."""
        if not line or line.isspace():
            return None
        if len(line) > MAX_LOG_LINE_BYTES:
            raise InvalidLine(f"it is longer than {MAX_LOG_LINE_BYTES // 1024} KiB")
        if b"\0" in line:
            raise InvalidLine(INVALID_CHARACTER)
        text = line.decode() if is_utf8(line) else line.decode("latin-1")
        found = _LINE.match(text)
        if found is None:
            raise InvalidLine(NOT_A_LOG_LINE)
        _check_names(found["names"])
        request, status = found["request"].split(" "), int(found["status"])
        if len(request) < 2 or request[0] not in _PAGE_METHODS or status >= _FIRST_ERROR:
            return None
        target = _unescaped(request[1])
        name = PAGE_VIEW if _is_page(target) else ASSET
        if name == ASSET and not self._takes_assets:
            return None
        agent = _unescaped(_present(found["agent"]))[:MAX_USER_AGENT_LENGTH]
        fields: dict[str, Any] = {
            "name": name,
            "timestamp": _epoch_ms(found["time"]),
            "path": target.partition("?")[0],
            "url": target if "?" in target else None,
            "referrer": _unescaped(_present(found["referrer"])),
            "anonymousId": make_visitor_id(
                self._salt,
                website_id=self._website_id,
                address=found["address"],
                user_agent=agent,
            ),
            "properties": {"method": request[0], "status": status, **_size(found["bytes"])},
        }
        visitor = self._find_visitor(found["address"], agent)
        return MappedEvent(fields, self._source_id(line), visitor)

    def _source_id(self, line: bytes) -> bytes:
        """Return what identifies a line: its text, and which of the equal lines it is."""
        digest = blake2b(line, digest_size=16).digest()
        number = self._counts.pop(digest, 0)
        self._counts[digest] = number + 1  # now the last one
        if len(self._counts) > MAX_COUNTED_LINES:
            del self._counts[next(iter(self._counts))]
        return b"access-log\0%b\0%d" % (digest, number)


def _check_names(names: str) -> None:
    """Refuse an address among the names of the visitor: it shows that the first field is none."""
    if names == _NO_NAMES:  # as in most lines
        return
    identity, *others = names.split()
    if _is_address(identity):
        raise InvalidLine(VIRTUAL_HOST)
    if any(map(_is_address, others)):
        raise InvalidLine(FIELDS_BEFORE)


def _unescaped(text: str) -> str:
    """Return a field without the escapes of Apache (`\\"`, `\\t`, `\\xc3`) and nginx (`\\x22`).

    Bytes that are escaped together are UTF-8, as those that are not escaped. NUL stays escaped.
    """
    if "\\" not in text:
        return text
    unescaped = _ESCAPE.sub(_unescape, text).encode("utf-8", "surrogateescape")
    return unescaped.decode() if is_utf8(unescaped) else unescaped.decode("latin-1")


def _unescape(found: re.Match[str]) -> str:
    if found[1] is None:
        return _ESCAPES.get(found[2], found[0])
    byte = bytes.fromhex(found[1])
    return found[0] if byte == b"\0" else byte.decode("utf-8", "surrogateescape")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_page(target: str) -> bool:
    last = target.partition("?")[0].rpartition("/")[2]
    return "." not in last or last.rpartition(".")[2].lower() in _PAGE_ENDINGS


def _epoch_ms(text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise InvalidLine(NOT_A_LOG_LINE)
    day, month, year, hour, minute, second, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        month_number = _MONTHS.index(month) + 1
        zone = timezone(-offset if sign == "-" else offset)
        local = datetime(
            int(year), month_number, int(day), int(hour), int(minute), int(second),
            tzinfo=zone,
        )  # fmt: skip
        return int(local.astimezone(UTC).timestamp()) * 1000
    except (ValueError, OverflowError) as error:
        raise InvalidLine(NOT_A_LOG_LINE) from error


def _present(text: str | None) -> str:
    return "" if text is None or text == _MISSING else text


def _size(text: str) -> dict[str, int]:
    return {} if text == _MISSING else {"bytes": int(text)}
