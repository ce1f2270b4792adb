"""The messages between workers and the engine process, each a MessagePack map with a tag."""

from enum import Enum
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from headrace.model.erasure import ErasureRequest
from headrace.model.export import Watermark
from headrace.model.stored_rows import ExpiredRows, StoredRows
from headrace.model.tenancy import WebsiteId
from headrace.ports.live import LiveItem, LiveItems
from headrace.ports.rate_limiter import CountedCall, RateLimitResult
from headrace.ports.rows.erasure import Erasure
from headrace.ports.rows.versions import RowRange
from headrace.ports.store import QueryLimits, StoreStatus


class RunSelect(Struct, frozen=True, tag="select"):
    """Run a SELECT over everything that is durable now; `parameters` are encoded."""

    sql: str
    parameters: dict[str, str]
    website_id: str
    limits: QueryLimits


class CountCall(Struct, frozen=True, tag="hit"):
    """Count one call of a caller."""

    caller: str
    call: CountedCall


class CheckReady(Struct, frozen=True, tag="ask_ready"):
    """Report whether a select would succeed now."""


class WaitStored(Struct, frozen=True, tag="await_stored"):
    """Reply when everything that is durable now and can be read is in the store.

    With `all_logs`, fail while a log cannot be read.
    """

    all_logs: bool = False


class TakeSnapshot(Struct, frozen=True, tag="take_snapshot"):
    """Take a snapshot of the data directory, which exists until the connection is closed.

    A partial one leaves out what cannot be read of the logs.
    """

    partial: bool = False


class OpenExport(Struct, frozen=True, tag="open_export"):
    """Begin an export of a website, which ends when the connection is closed."""

    website_id: str


class ReadExport(Struct, frozen=True, tag="read_export"):
    """Run a SELECT that names its format, without waiting for a load; see `RunSelect`."""

    sql: str
    parameters: dict[str, str]
    website_id: str
    limits: QueryLimits


class EraseRows(Struct, frozen=True, tag="erase"):
    """Begin an erasure; the reply comes when no answer has its rows. It goes on without a client.

    A dry run only counts. `document` is the request as JSON: of a property it may have an integer
    past 64 bits, which MessagePack lacks.
    """

    document: bytes

    @classmethod
    def of(cls, request: ErasureRequest) -> "EraseRows":
        """Return the message for a request."""
        return cls(msgspec.json.encode(request))

    def request(self) -> ErasureRequest:
        """Return the request. Raises `msgspec.MsgspecError` for other bytes."""
        return msgspec.json.decode(self.document, type=ErasureRequest)


class DescribeStorage(Struct, frozen=True, tag="describe_storage"):
    """Describe what is stored of a website, or of all without one."""

    website_id: WebsiteId | None = None


class PruneRows(Struct, frozen=True, tag="prune"):
    """Delete all expired rows; the reply comes when they are gone. A dry run only counts."""

    dry_run: bool = False


class ReadVersion(Struct, frozen=True, tag="read_version"):
    """Reply with the version of a website's rows in ranges, over everything that is durable now."""

    website_id: str
    ranges: tuple[RowRange, ...]


class FollowLive(Struct, frozen=True, tag="follow_live"):
    """Reply with the newest items of a website; see `ports.live.LiveSource.follow`."""

    website_id: str
    epoch: str
    after: int


class PublishLive(Struct, frozen=True, tag="publish_live"):
    """Append an item to a website that is watched."""

    website_id: str
    item: LiveItem


class OpenLiveStream(Struct, frozen=True, tag="open_live_stream"):
    """Count a stream of a caller until the connection is closed."""

    caller: str


UnaryRequest: TypeAlias = (
    RunSelect
    | CountCall
    | CheckReady
    | WaitStored
    | ReadExport
    | EraseRows
    | DescribeStorage
    | PruneRows
    | ReadVersion
    | FollowLive
    | PublishLive
)
OpenRequest: TypeAlias = TakeSnapshot | OpenExport | OpenLiveStream
"""What it asks for exists until its connection is closed."""

IpcRequest: TypeAlias = UnaryRequest | OpenRequest


class SelectResult(Struct, frozen=True, tag="answer"):
    """The result of a select, in the format that `decode_result` reads."""

    output: bytes
    cached: bool = False


class CallCounted(Struct, frozen=True, tag="verdict"):
    """The reply to `CountCall`."""

    verdict: RateLimitResult


class Readiness(Struct, frozen=True, tag="readiness"):
    """The reply to `CheckReady`."""

    status: StoreStatus


class Stored(Struct, frozen=True, tag="stored"):
    """The reply to `WaitStored`."""


class SnapshotTaken(Struct, frozen=True, tag="snapshot_taken"):
    """The directory of the snapshot, the number of entries below it, and the unreadable logs."""

    path: str
    entries: int
    unreadable: tuple[str, ...] = ()


class ExportOpened(Struct, frozen=True, tag="export_opened"):
    """The export has begun; the store has all rows before the watermark."""

    watermark: Watermark


class ExportRead(Struct, frozen=True, tag="export_read"):
    """The output of a select in its format."""

    output: bytes


class ErasureBegun(Struct, frozen=True, tag="erasure_begun"):
    """The erasure, as it is now, without the plan: the ids of its rows, and its selectors."""

    erasure: Erasure

    @classmethod
    def of(cls, erasure: Erasure) -> "ErasureBegun":
        """Return the message for an erasure."""
        return cls(replace(erasure, plan=None))


class StorageDescribed(Struct, frozen=True, tag="storage_described"):
    """The reply to `DescribeStorage`."""

    rows: tuple[StoredRows, ...]


class RowsPruned(Struct, frozen=True, tag="rows_pruned"):
    """The reply to `PruneRows`."""

    rows: tuple[ExpiredRows, ...]


class VersionRead(Struct, frozen=True, tag="version_read"):
    """The reply to `ReadVersion`; None where rows of the ranges change now."""

    version: str | None


class LiveFollowed(Struct, frozen=True, tag="live_followed"):
    """The reply to `FollowLive`."""

    items: LiveItems


class LivePublished(Struct, frozen=True, tag="live_published"):
    """The reply to `PublishLive`."""


class LiveStreamCounted(Struct, frozen=True, tag="live_stream_counted"):
    """The reply to `OpenLiveStream`: whether the caller may have this stream."""

    is_allowed: bool


class FailureKind(Enum):
    """The kinds of failures of selects, snapshots, exports and erasures."""

    TIMED_OUT = "timed_out"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"  # a bug: the log of the engine process has the cause


class Failure(Struct, frozen=True, tag="failure"):
    """A select, a snapshot, an export or an erasure failed.

    `reason` never contains a value of a caller.
    """

    kind: FailureKind
    reason: str


IpcReply = (
    SelectResult
    | CallCounted
    | Readiness
    | Stored
    | SnapshotTaken
    | ExportOpened
    | ExportRead
    | ErasureBegun
    | StorageDescribed
    | RowsPruned
    | VersionRead
    | LiveFollowed
    | LivePublished
    | LiveStreamCounted
    | Failure
)
