"""Decodes the tables `website_event` and `session` of Umami: as CSV, or in a dump of PostgreSQL.

A file or a part of a dump is told apart by its columns. Sessions are read first and kept in memory;
newer versions of Umami repeat their columns in each event, which then count.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from headrace.ingest.imports.decoder import InvalidLine, check_line, decode_lines
from headrace.ingest.imports.mapped_events import (
    PAGE_VIEW,
    Fields,
    MappedEvent,
    profile_id_of,
    to_item,
    visitor_with,
)
from headrace.ingest.receive.decoding.validation_errors import INVALID_CHARACTER
from headrace.model.imports import (
    DecodedChunk,
    ImportItem,
    LineChunk,
    RefusedLine,
)

NO_HEADER: Final = "it belongs neither to website_event nor to session: a header must name columns"
WRONG_COLUMNS: Final = "it has another number of columns than its header"

OPEN_QUOTE: Final = "a quoted field does not end"

OPEN_TABLE: Final = "the dump ends in the middle of a table"

INSERT: Final = "INSERT is not read: dump with pg_dump, without --inserts, or export CSV"

NO_TABLE: Final = "the dump has neither website_event nor session"

MAX_RECORD_BYTES: Final = 64 * 1024
"""Of a CSV record with line feeds within quotes. All texts of Umami have at most 500 characters."""

_EVENT_KEY, _SESSION_KEY = "event_id", "session_id"
_PAGE_VIEW_TYPE: Final = "1"
_NAME = r'(?:(?:\w+|"[^"]+"|`[^`]+`)\.)?["`]?(\w+)["`]?'
_COPY = re.compile(rf"COPY {_NAME} \(([^)]*)\) FROM stdin;")
_INSERT = re.compile(rf"(?:INSERT +(?:IGNORE +)?|REPLACE +)INTO {_NAME}[ (]")
_TABLES = frozenset({"website_event", "session"})
_END_OF_COPY: Final = r"\."
_NULL: Final = r"\N"
"""In dumps, and in CSV files that ClickHouse or MySQL wrote."""

_COPY_ESCAPES: Mapping[str, str] = {
    "t": "\t",
    "n": "\n",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
}
_SHORT_OFFSET = re.compile(r"[+-][0-9]{2}$")
_SESSION_COLUMNS = (
    *("browser", "os", "device", "screen", "language"),
    *("country", "region", "subdivision1", "city"),
)
_KEPT_COLUMNS = (*_SESSION_COLUMNS, "distinct_id")  # which `session_data` has, too

_BROWSERS: Mapping[str, str] = {
    "chrome": "Chrome",
    "crios": "Chrome",
    "chromium-webview": "Chrome",
    "firefox": "Firefox",
    "fxios": "Firefox",
    "safari": "Safari",
    "ios": "Safari",
    "ios-webview": "Safari",
    "edge": "Edge",
    "edge-chromium": "Edge",
    "edge-ios": "Edge",
    "opera": "Opera",
    "samsung": "Samsung Internet",
    "yandexbrowser": "Yandex Browser",
    "brave": "Brave",
}
_SYSTEMS: Mapping[str, str] = {"Mac OS": "macOS", "Android OS": "Android", "Chrome OS": "ChromeOS"}
_DEVICES: Mapping[str, str] = {"laptop": "desktop"}

Row = Mapping[str, str]
_ReadRow = Callable[[str], Sequence[str]]


class UmamiDecoder:
    """Decodes one import. Sessions must come before their events; see `is_session_file`."""

    def __init__(self, website_id: str) -> None:
        self._website_id = website_id
        self._sessions: dict[str, Row] = {}
        self._columns: Sequence[str] | None = None
        self._is_dump = False
        self._has_table = False
        """Whether a dump has had one of the tables."""
        self._open_record = b""
        """The lines of a CSV record that a quoted line feed continues."""
        self._open_lines = 0

    def decode(self, chunk: LineChunk, *, now_ms: int) -> DecodedChunk:
        """Return the items of a chunk; see `ChunkDecoder`. Headers and sessions are skipped."""
        if chunk.first_line == 1:
            self._columns, self._is_dump, self._has_table = None, False, False
            self._open_record, self._open_lines = b"", 0
        decoded = decode_lines(chunk, lambda line: self._item(line, now_ms))
        if chunk.lines or not (reason := self._unfinished()):
            return decoded
        unfinished = RefusedLine(chunk.file, chunk.first_line, reason)
        return replace(decoded, refused=[*decoded.refused, unfinished])

    def _unfinished(self) -> str:
        """Return what the end of a file interrupts, an empty text for nothing."""
        if self._open_record:
            return _with_start(OPEN_QUOTE, self._open_lines)
        if not self._is_dump:
            return ""
        if self._columns is not None:
            return OPEN_TABLE
        return "" if self._has_table else NO_TABLE

    def _item(self, line: bytes, now_ms: int) -> ImportItem | None:
        event = self._event(line)
        return None if event is None else to_item(event, self._website_id, now_ms=now_ms)

    def _event(self, line: bytes) -> MappedEvent | None:
        """Return the event that ends with a line, None where none does."""
        if self._columns is None or self._is_dump:
            _check_text(line)
            return self._dumped_event(line.decode().removesuffix("\r"))
        record, lines = self._open_record + line, self._open_lines + 1
        is_open = record.count(b'"') % 2
        if is_open and len(record) <= MAX_RECORD_BYTES:
            self._open_record, self._open_lines = record + b"\n", lines
            return None
        self._open_record, self._open_lines = b"", 0
        if is_open:
            raise InvalidLine(_with_start(OPEN_QUOTE, lines - 1))
        try:
            _check_text(record)  # as a whole: a line refused alone would leave the quote open
            return self._row_event(record.decode().rstrip("\r"), _csv_values)
        except InvalidLine as error:
            raise InvalidLine(_with_start(str(error), lines - 1)) from error

    def _dumped_event(self, line: str) -> MappedEvent | None:
        """Read a line of a dump, or the first line of a file."""
        if self._columns is not None:
            if line == _END_OF_COPY:
                self._columns = None
                return None
            return self._row_event(line, _copy_values)
        if not line.strip():
            return None
        found = _COPY.match(line) or _INSERT.match(line)
        if found is not None:
            self._begin_table(found)
        elif self._is_dump or line.startswith(("--", "SET ", "\\")):
            self._is_dump = True
        else:
            columns = _csv_values(line)
            if not (_has_sessions(columns) or {_EVENT_KEY, _SESSION_KEY} <= set(columns)):
                raise InvalidLine(NO_HEADER)
            self._columns = columns
        return None

    def _begin_table(self, found: re.Match[str]) -> None:
        """Take the columns of a COPY of one of the tables, and refuse an INSERT."""
        self._is_dump = True
        if found[1] not in _TABLES:
            return
        self._has_table = True
        if found.re is _INSERT:
            raise InvalidLine(INSERT)
        self._columns = [name.strip(' "') for name in found[2].split(",")]

    def _row_event(self, line: str, read: _ReadRow) -> MappedEvent | None:
        if not line or self._columns is None:
            return None
        values = read(line)
        if len(values) != len(self._columns):
            raise InvalidLine(WRONG_COLUMNS)
        row = dict(zip(self._columns, values, strict=True))
        if _EVENT_KEY in row:
            return self._map(row)
        self._sessions[row[_SESSION_KEY]] = {
            name: row[name] for name in _KEPT_COLUMNS if row.get(name)
        }
        return None

    def _map(self, row: Row) -> MappedEvent:
        if not row[_EVENT_KEY]:
            raise InvalidLine("it has no id of the event")
        own = {name: row[name] for name in _KEPT_COLUMNS if row.get(name)}
        session = {**self._sessions.get(row.get(_SESSION_KEY, ""), {}), **own}
        get = session.get
        system, _, version = _system(get("os", ""))
        visitor = visitor_with(
            country=get("country", ""),
            region=get("region", "") or get("subdivision1", ""),
            city=get("city", ""),
            browser_name=_BROWSERS.get(get("browser", ""), get("browser", "")),
            os_name=system,
            os_version=version,
            device_type=_DEVICES.get(get("device", ""), get("device", "")),
        )
        is_view = row.get("event_type", _PAGE_VIEW_TYPE) == _PAGE_VIEW_TYPE
        fields: Fields = {
            "name": PAGE_VIEW if is_view else row.get("event_name", ""),
            "timestamp": _timestamp(row.get("created_at", "")),
            "anonymousId": row.get(_SESSION_KEY),
            "profileId": profile_id_of(get("distinct_id")),
            "sessionId": row.get("visit_id") or row.get(_SESSION_KEY),
            "path": row.get("url_path"),
            "url": _url(row.get("hostname"), row.get("url_path"), row.get("url_query")),
            "title": row.get("page_title"),
            "referrer": _url(
                row.get("referrer_domain"), row.get("referrer_path"), row.get("referrer_query")
            ),
            "language": get("language"),
            "screen_resolution": get("screen"),
            "properties": {"tag": row["tag"]} if row.get("tag") else None,
        }
        return MappedEvent(fields, f"umami\0{row[_EVENT_KEY]}".encode(), visitor)


def _with_start(reason: str, lines_before: int) -> str:
    """Add to a reason where the record begins: the lines before this one are lost with it."""
    if not lines_before:
        return reason
    unit = "line" if lines_before == 1 else "lines"
    return f"{reason}; its record begins {lines_before} {unit} before"


def _check_text(line: bytes) -> None:
    check_line(line)
    if b"\0" in line:
        raise InvalidLine(INVALID_CHARACTER)


def is_session_file(first_line: bytes) -> bool:
    """Return whether a CSV file has sessions, by its header."""
    return _has_sessions(first_line.decode(errors="replace").strip().replace('"', "").split(","))


def _has_sessions(columns: Sequence[str]) -> bool:
    """Return whether columns are those of `session`: `session_data` has its key, too."""
    return (
        _SESSION_KEY in columns
        and _EVENT_KEY not in columns
        and not set(columns).isdisjoint(_SESSION_COLUMNS)
    )


def _csv_values(record: str) -> Sequence[str]:
    try:
        rows: Iterator[list[str]] = csv.reader([record], strict=True)
        values = next(rows, list[str]())
    except csv.Error as error:
        reason = str(error).partition(" - ")[0]  # a hint to programmers follows
        raise InvalidLine(f"it is no CSV: {reason}") from error
    return ["" if value == _NULL else value for value in values]


def _copy_values(line: str) -> Sequence[str]:
    return [_copy_value(value) for value in line.split("\t")]


def _copy_value(value: str) -> str:
    if value == _NULL or "\\" not in value:
        return "" if value == _NULL else value
    return re.sub(r"\\(.)", lambda found: _COPY_ESCAPES.get(found[1], found[1]), value)


def _timestamp(text: str) -> str | None:
    """Return ISO 8601: PostgreSQL writes an offset of whole hours without minutes."""
    if not text:
        return None
    return f"{text}:00" if _SHORT_OFFSET.search(text) and ":" in text else text.replace(" UTC", "Z")


def _url(host: str | None, path: str | None, query: str | None) -> str | None:
    if not host:
        return f"{path or ''}?{query}" if query else None
    return f"https://{host}{path or '/'}{f'?{query}' if query else ''}"


def _system(name: str) -> tuple[str, str, str]:
    if name.startswith("Windows "):
        return name.partition(" ")
    return _SYSTEMS.get(name, name), "", ""
