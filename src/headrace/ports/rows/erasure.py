"""What erasures need: their records, and what finds and deletes rows, log records and files."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from headrace.model.erasure import Selector, SelectorKind, Subject
from headrace.model.plan import CompiledQuery
from headrace.model.tenancy import WebsiteId
from headrace.ports.event_log import LogOffset
from headrace.ports.quarantine import QuarantineEntry


class RowsToErase(Struct, frozen=True):
    """The stored rows of one table, by their ids, all of a time within `first_ms` to `last_ms`.

    Without `ids` these are all rows of the website.
    """

    table: str
    rows: int
    ids: tuple[bytes, ...] = ()
    first_ms: int = 0
    last_ms: int = 0


class ErasurePlan(Struct, frozen=True):
    """What exactly is erased: decided once, so that an erasure that was killed goes on with it.

    `selectors` are the one that was asked for, and those of the visitors of a profile. Records of
    logs before `log_ends` and the entries `quarantined` are searched, and nothing that came later.
    `received_until_ms` is the last time of receipt of rows and records that are erased, where the
    plan was made later than the erasure was asked for; None says all.
    """

    selectors: tuple[Selector, ...]
    tables: tuple[RowsToErase, ...]
    quarantined: tuple[str, ...] = ()
    log_ends: Mapping[str, LogOffset] = {}
    received_until_ms: int | None = None


class Erasure(Struct, frozen=True, kw_only=True):
    """One erasure. Times are epoch milliseconds, 0 for what has not happened yet.

    `plan` has the identifiers, and is None once no file holds them, or as long as they have to be
    found by `subjects`. `by_hand` says what Headrace does not erase.
    """

    id: str
    website_id: WebsiteId
    kind: SelectorKind
    subjects: tuple[Subject, ...]
    by: str
    requested_ms: int
    answers_clean_ms: int = 0
    done_ms: int = 0
    rows: Mapping[str, int] = {}
    by_hand: tuple[str, ...] = ()
    last_error: str = ""
    plan: ErasurePlan | None = None

    @property
    def is_done(self) -> bool:
        """Whether no file of the data directory holds the rows."""
        return bool(self.done_ms)


class ErasureStore(Protocol):
    """The erasures of a data directory. Blocking; one process writes, any may read.

    All methods raise `StoreUnavailable` where the files cannot be read or written.
    """

    def key(self) -> bytes:
        """Return the key of the subjects; the first call creates it durably."""
        ...

    def use_key(self, key: bytes) -> None:
        """Use the key that machines have agreed on.

        Raises `StoreUnavailable` where there are erasures under another key, too.
        """
        ...

    def put(self, erasure: Erasure) -> None:
        """Store an erasure, or replace it; it is on disk on return."""
        ...

    def get(self, erasure_id: str) -> Erasure | None:
        """Return an erasure, None for an unknown id."""
        ...

    def all(self) -> Sequence[Erasure]:
        """Return all erasures, oldest first."""
        ...

    def ids(self) -> frozenset[str]:
        """Return the ids of all erasures."""
        ...


class RowFinder(Protocol):
    """Reads rows to erase, and the files of rows that are deleted.

    Blocking, used from one thread at a time. Raises `StoreUnavailable` if a retry may help.
    """

    def select(self, query: CompiledQuery) -> Sequence[Sequence[Any]]:
        """Run a SELECT over what is loaded, and return its rows."""
        ...

    def replaced_parts(self) -> frozenset[str]:
        """Return the names of parts that selects read no more, and that are still on disk.

        No part ever gets the name of another one.
        """
        ...

    def detached_parts(self) -> int | None:
        """Return the number of parts that were set aside as damaged; None where it is unknown."""
        ...

    def close(self) -> None:
        """Close the connections. May be called twice."""
        ...


class LogRewriter(Protocol):
    """Overwrites records of the logs. Blocking; safe while writers append and the loader loads."""

    def rewrite(
        self, ends: Mapping[str, LogOffset], rewrite_record: Callable[[bytes], bytes | None]
    ) -> int:
        """Overwrite records before the ends of logs, by name; return how many, when on disk.

        `rewrite_record` returns what replaces a payload, of the same length, or None. It gets
        damaged bytes, too. All records must be loaded. Safe to call twice. Raises
        `StoreUnavailable`.
        """
        ...


class ErasableEntries(Protocol):
    """The quarantine as an erasure needs it. Blocking. Raises `StoreUnavailable`."""

    def find(self, matches: Callable[[QuarantineEntry | bytes], bool]) -> Sequence[str]:
        """Return the ids of the entries that match; what cannot be decoded is given as bytes."""
        ...

    def remove(self, ids: Collection[str]) -> None:
        """Remove entries durably. Safe to call twice."""
        ...


class ErasableReplies(Protocol):
    """The replies that are kept for an Idempotency-Key, which may name event ids. Blocking.

    All methods raise `StoreUnavailable`.
    """

    def event_ids(self) -> frozenset[str]:
        """Return the event ids that replies name."""
        ...

    def forget_event_id(self, event_id: str) -> None:
        """Replace an event id in all replies by null; return when no file has it any more."""
        ...


class PartLifetimes(Protocol):
    """How long the store keeps the files of parts that it replaced. Blocking."""

    def shorten(self) -> None:
        """Let the files go within seconds, when all others are durable; until `restore`.

        Called again while files are left. Only where nothing else writes to the store. Raises
        `StoreUnavailable`.
        """
        ...

    def restore(self) -> None:
        """Keep files as long as usual again; safe to call at any time.

        Raises `StoreUnavailable`.
        """
        ...


class ErasureAudit(Protocol):
    """The audit log as erasures need it. Blocking. Raises `StoreUnavailable`."""

    def record(self, erasure: Erasure) -> None:
        """Write the line of an erasure that is about to begin."""
        ...

    def forget_website(self, website_id: WebsiteId) -> None:
        """Take the name of a website out of its lines. Safe to call twice."""
        ...


class KeptPartLifetimes:
    """A `PartLifetimes` that changes nothing: files go when the store lets them go."""

    def shorten(self) -> None:
        """Do nothing."""

    def restore(self) -> None:
        """Do nothing."""
