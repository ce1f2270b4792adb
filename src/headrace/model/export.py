"""What an export is asked for, and which rows belong to it."""

from enum import Enum

from msgspec import Struct

from headrace.model.tenancy import WebsiteId

FIRST_TIME_MS = 0
END_OF_TIME_MS = 7_258_118_400_000
"""Every stored time is between these: earlier ones are refused, later ones replaced."""


class ExportFormat(Enum):
    """The formats of an export."""

    NDJSON = "ndjson"
    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"


class ExportRequest(Struct, frozen=True, kw_only=True):
    """Rows of one stored table of one website, with `start_ms` <= time < `end_ms`.

    Rows before `cutoff_ms` are expired; None is without a cutoff.
    """

    website_id: WebsiteId
    table: str
    format: ExportFormat
    start_ms: int = FIRST_TIME_MS
    end_ms: int = END_OF_TIME_MS
    cutoff_ms: int | None = None


class LogEnd(Struct, frozen=True):
    """The end of one log: `number` is that of its row ids, the rest the offset in its files."""

    number: int
    segment: int
    offset: int


class Watermark(Struct, frozen=True):
    """Which rows were acknowledged when an export began.

    A row of a log in `log_ends` belongs to the export if its record is before that end; a row of
    any other log, if its record was received by `received_ms`. `identity` is that of the ledger
    whose logs these are.
    """

    identity: str
    received_ms: int
    log_ends: tuple[LogEnd, ...] = ()


class Chunk(Struct, frozen=True):
    """Rows of an export that are read together: `start_ms` <= time < `end_ms`.

    Rows of one millisecond can be too many; a hash then divides them into `slices`, of which this
    is number `slice_index`. `rows` is an estimate: it may count rows after the watermark.
    """

    start_ms: int
    end_ms: int
    rows: int
    slice_index: int = 0
    slices: int = 1


class ExportPlan(Struct, frozen=True):
    """The watermark of an export and its chunks in order. Following it twice gives equal rows."""

    watermark: Watermark
    chunks: tuple[Chunk, ...]
