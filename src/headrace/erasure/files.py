"""The files that keep erased rows: event logs, kept replies, replaced parts and snapshots."""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from msgspec import Struct

from headrace.erasure.log_records import known_selectors, without_erased_items
from headrace.erasure.receipt import describe_what_remains
from headrace.erasure.recognition import KnownSubjects
from headrace.model.erasure import Selector, SelectorKind
from headrace.ports.event_log import LogOffset
from headrace.ports.rows.erasure import (
    ErasableReplies,
    ErasurePlan,
    LogRewriter,
    PartLifetimes,
    RowFinder,
)


class Leftovers(Struct, frozen=True):
    """Files that still have erased rows: parts that were replaced, and snapshots of backups."""

    parts: frozenset[str]
    snapshots: frozenset[str]


class ErasableFiles:
    """What an erasure takes out of files; blocking. Raises `StoreUnavailable`: a retry may help.

    `snapshots` names the snapshots that exist now, `damaged_files` counts the files in `damaged`,
    `has_unused_store` says whether the data directory has a store that was migrated to servers.
    """

    def __init__(
        self,
        *,
        rewriter: LogRewriter,
        replies: ErasableReplies,
        finder: RowFinder,
        lifetimes: PartLifetimes,
        snapshots: Callable[[], Collection[str]],
        damaged_files: Callable[[], int],
        has_unused_store: Callable[[], bool],
    ) -> None:
        self._rewriter = rewriter
        self._replies = replies
        self._finder = finder
        self._lifetimes = lifetimes
        self._snapshots = snapshots
        self._damaged_files = damaged_files
        self._has_unused_store = has_unused_store

    def selectors(
        self, website_id: str, known: KnownSubjects, log_ends: Mapping[str, LogOffset]
    ) -> set[Selector]:
        """Return the selectors of known subjects that occur in the logs and in kept replies."""
        found: set[Selector] = set()

        def collect(payload: bytes) -> None:
            found.update(known_selectors(payload, website_id, known))

        self._rewriter.rewrite(log_ends, collect)
        for event_id in self._replies.event_ids():
            found.update(known.selectors_in({"event_id": event_id}, received_ms=0))
        return found

    def clean(self, website_id: str, plan: ErasurePlan) -> Leftovers:
        """Take the items out of logs and kept replies; return which files remain to go away."""
        if plan.selectors:
            rewrite = partial(
                without_erased_items,
                website_id=website_id,
                selectors=plan.selectors,
                received_until_ms=plan.received_until_ms,
            )
            self._rewriter.rewrite(plan.log_ends, rewrite)
        for selector in plan.selectors:
            if selector.kind is SelectorKind.EVENT_ID:
                self._replies.forget_event_id(str(selector.value))
        return Leftovers(self._finder.replaced_parts(), frozenset(self._snapshots()))

    def are_left(self, leftovers: Leftovers) -> bool:
        """Return whether some of these still exist; the store is told to let its parts go."""
        if not leftovers.snapshots.isdisjoint(self._snapshots()):
            return True
        if not leftovers.parts or leftovers.parts.isdisjoint(self._finder.replaced_parts()):
            return False
        self._lifetimes.shorten()
        return True

    def restore_lifetimes(self) -> None:
        """Let the store keep the files of replaced parts as long as usual again."""
        self._lifetimes.restore()

    def describe_what_remains(self) -> tuple[str, ...]:
        """Return what remains to be done by hand."""
        return describe_what_remains(
            damaged_files=self._damaged_files(),
            detached_parts=self._finder.detached_parts(),
            has_unused_store=self._has_unused_store(),
        )
