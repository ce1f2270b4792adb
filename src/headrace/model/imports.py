"""What an import reads, and what it reports."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from msgspec import Struct

from headrace.model.log_records import EventKind
from headrace.model.tenancy import WebsiteId

MAX_REPORTED = 1000
"""Refused lines in the result of an import. All of them are in its report file."""

MAX_LINE_BYTES = 20 * 1024 * 1024
"""As much as the decoded body of a request may have."""


class ImportFormat(Enum):
    """The formats of an import."""

    NDJSON = "ndjson"
    PARQUET = "parquet"
    POSTHOG = "posthog"
    MIXPANEL = "mixpanel"
    AMPLITUDE = "amplitude"
    ACCESS_LOG = "access-log"
    UMAMI = "umami"


class LineChunk(Struct, frozen=True):
    """Whole lines of a file without their line feeds; the first one has the number `first_line`.

    Line 1 begins a file, also one that is read a second time. A chunk without lines follows the
    last one of a file.
    """

    file: str
    first_line: int
    lines: Sequence[bytes]


class RefusedLine(Struct, frozen=True):
    """A line that was not taken, and why. Lines count from 1, headers included."""

    file: str
    line: int
    reason: str


class ImportItem(Struct, frozen=True, gc=False):
    """One item with what it brings along for its row.

    `value` is an item of a log record: for `EventKind.EVENTS` a `FullEventTuple`, whose website is
    set already.
    """

    time_ms: int
    row_id: bytes
    received_ms: int
    value: Any


class DecodedChunk(Struct, frozen=True):
    """The items of a chunk of lines, and the lines without one."""

    items: Sequence[ImportItem]
    refused: Sequence[RefusedLine]
    lines: int
    skipped: int = 0


class ImportRequest(Struct, frozen=True, kw_only=True):
    """What is imported, and where. Items before `cutoff_ms` are expired and not stored.

    `takes_assets` is for access logs.
    """

    format: ImportFormat
    website_id: WebsiteId
    event_kind: EventKind
    cutoff_ms: int | None = None
    is_dry_run: bool = False
    takes_assets: bool = False


class ImportTotals(Struct):
    """The lines of an import so far, by what became of them."""

    lines: int = 0
    stored: int = 0
    repeated: int = 0
    expired: int = 0
    erased: int = 0
    skipped: int = 0
    refused: int = 0
