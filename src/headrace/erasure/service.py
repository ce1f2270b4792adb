"""The steps of an erasure. The engine process runs them in order, and repeats those that fail."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from headrace.base.clock import Clock
from headrace.erasure.files import ErasableFiles, Leftovers
from headrace.erasure.planning import ErasurePlanner
from headrace.erasure.receipt import QUARANTINE
from headrace.erasure.recognition import KnownSubjects
from headrace.erasure.statements import deletions
from headrace.erasure.subjects import subjects_of
from headrace.model.catalog import STORED_TABLES
from headrace.model.erasure import WHOLE_WEBSITE, ErasureRequest, Subject
from headrace.ports.event_log import LogOffset
from headrace.ports.rows.deletion import DeletionLost, DeletionWatch, RowDeleter
from headrace.ports.rows.erasure import (
    ErasableEntries,
    Erasure,
    ErasureAudit,
    ErasurePlan,
    ErasureStore,
)

_TABLES = {table.name: table for table in STORED_TABLES}

DELETION_PATIENCE_S: Final = 3.0
"""A caller waits for the deletion: it is answered soon after this."""


class ErasureService:
    """The steps; blocking, one at a time. All raise `StoreUnavailable` where a retry may help."""

    def __init__(
        self,
        *,
        erasures: ErasureStore,
        planner: ErasurePlanner,
        deleter: RowDeleter,
        entries: ErasableEntries,
        files: ErasableFiles,
        audit: ErasureAudit,
        new_id: Callable[[], str],
        clock: Clock,
    ) -> None:
        self._erasures = erasures
        self._planner = planner
        self._deleter = deleter
        self._entries = entries
        self._files = files
        self._audit = audit
        self._new_id = new_id
        self._clock = clock
        self._lost_before: dict[str, int] = {}
        self._watch = DeletionWatch(clock, patience_s=DELETION_PATIENCE_S)

    def begin(self, request: ErasureRequest, log_ends: Mapping[str, LogOffset]) -> Erasure:
        """Decide what is erased, and note it durably; not for a dry run. `delete` goes on.

        Called between two loads, with requeueing blocked, when all before the ends is loaded.
        """
        selectors = request.selectors
        if request.with_visitors:
            selectors += self._planner.visitors(request.website_id, selectors)
        plan = self._planner.plan(request.website_id, selectors, log_ends)
        erasure = Erasure(
            id=self._new_id(),
            website_id=request.website_id,
            kind=request.selectors[0].kind,
            subjects=() if request.dry_run else self._subjects(request.website_id, plan),
            by=request.by,
            requested_ms=self._clock.now_ms(),
            rows=_count_rows(plan),
            plan=plan,
        )
        if not request.dry_run:
            self._audit.record(erasure)
            self._erasures.put(erasure)
        return erasure

    def resume(self, erasure: Erasure, log_ends: Mapping[str, LogOffset]) -> Erasure:
        """Begin to delete what the plan names once more, after a kill or a failure.

        Without a plan, as after a restore, it is made: from the subjects. See `begin`.
        """
        if erasure.plan is None:
            plan = self._plan_from_subjects(erasure, log_ends)
            rows = erasure.rows or _count_rows(plan)
            erasure = msgspec.structs.replace(erasure, plan=plan, rows=rows)
            self._erasures.put(erasure)
        self._delete(erasure, _plan_of(erasure))
        return erasure

    def _plan_from_subjects(
        self, erasure: Erasure, log_ends: Mapping[str, LogOffset]
    ) -> ErasurePlan:
        """Plan an erasure from its subjects: rows that came after the request are not its rows."""
        key, website_id = self._erasures.key(), erasure.website_id
        known = KnownSubjects(key, website_id, [erasure])
        return self._planner.plan(
            website_id,
            self._planner.resolve(
                erasure, key, lambda: self._files.selectors(website_id, known, log_ends)
            ),
            log_ends,
            received_until_ms=erasure.requested_ms,
        )

    def delete(self, erasure: Erasure) -> None:
        """Begin to delete the rows of a plan; may be repeated. Loads nothing, and notes nothing."""
        self._delete(erasure, _plan_of(erasure))

    def pending(self) -> list[Erasure]:
        """Return the erasures that are not done, oldest first; called at the start."""
        self._files.restore_lifetimes()
        return [erasure for erasure in self._erasures.all() if not erasure.is_done]

    def is_deleting(self, erasure: Erasure) -> bool:
        """Return whether parts that selects read may still have the rows.

        Raises `DeletionLost` where a deletion was lost since this one was begun: it may be this
        one; `StoreUnavailable` while the store deletes nothing, which it keeps retrying.
        """
        states = {
            rows.table: self._deleter.state(_TABLES[rows.table])
            for rows in _plan_of(erasure).tables
        }
        if self._deleter.lost_deletions() != self._lost_before[erasure.id]:
            raise DeletionLost("a deletion was lost; it is begun again")
        self._watch.check(states)
        return any(state.parts_left for state in states.values())

    def forget_identifier(self, erasure: Erasure) -> Erasure:
        """Note that this machine has finished; other machines may not have."""
        forgotten = msgspec.structs.replace(erasure, plan=None, last_error="")
        self._erasures.put(forgotten)
        return forgotten

    def note_clean(self, erasure: Erasure) -> Erasure:
        """Note that no answer has the rows any more."""
        clean_ms = erasure.answers_clean_ms or self._clock.now_ms()
        clean = msgspec.structs.replace(erasure, answers_clean_ms=clean_ms, last_error="")
        self._erasures.put(clean)
        return clean

    def clean_files(self, erasure: Erasure) -> Leftovers:
        """Take the rows out of logs and kept replies; return which files remain to go away.

        A website that is erased as a whole also loses its name in the audit log.
        """
        plan, website_id = _plan_of(erasure), erasure.website_id
        if WHOLE_WEBSITE in plan.selectors:
            self._audit.forget_website(website_id)
        return self._files.clean(website_id, plan)

    def are_files_left(self, leftovers: Leftovers) -> bool:
        """Return whether some of these files still exist."""
        return self._files.are_left(leftovers)

    def finish(self, erasure: Erasure) -> Erasure:
        """Note that the erasure is done, and forget the identifier."""
        done = msgspec.structs.replace(
            erasure,
            plan=None,
            done_ms=self._clock.now_ms(),
            last_error="",
            by_hand=(*self._files.describe_what_remains(), *erasure.by_hand),
        )
        self._files.restore_lifetimes()
        self._erasures.put(done)
        self._lost_before.pop(erasure.id, None)
        return done

    def note_failure(self, erasure: Erasure, reason: str) -> Erasure:
        """Note why a step failed; it is repeated."""
        if erasure.last_error == reason:
            return erasure
        failed = msgspec.structs.replace(erasure, last_error=reason)
        self._erasures.put(failed)
        return failed

    def close(self) -> None:
        """Close the connections to the store. May be called twice."""
        self._deleter.close()
        self._planner.close()

    def _subjects(self, website_id: str, plan: ErasurePlan) -> tuple[Subject, ...]:
        return subjects_of(self._erasures.key(), website_id, plan.selectors)

    def _delete(self, erasure: Erasure, plan: ErasurePlan) -> None:
        self._lost_before[erasure.id] = self._deleter.lost_deletions()
        self._entries.remove(plan.quarantined)
        for rows in plan.tables:
            for condition in deletions(erasure.website_id, rows):
                self._deleter.begin(_TABLES[rows.table], condition)


def _plan_of(erasure: Erasure) -> ErasurePlan:
    if erasure.plan is None:
        raise ValueError(f"the erasure {erasure.id} is done")
    return erasure.plan


def _count_rows(plan: ErasurePlan) -> dict[str, int]:
    rows = Counter({rows.table: rows.rows for rows in plan.tables})
    counts = {name: rows[name] for name in sorted(_TABLES)}
    return {**counts, QUARANTINE: len(plan.quarantined)}
