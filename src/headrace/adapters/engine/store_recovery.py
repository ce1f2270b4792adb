"""Detects at start that tables of the embedded store are not those the ledger has loaded into."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.files.metadata_copy import forget_metadata
from headrace.adapters.store.chdb.table_identity import read_identities, table_directories
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.failures import raising_store_unavailable
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import Logger
from headrace.ports.event_log import LogOffset
from headrace.ports.ledger import RequeuedItem


class BoundLedger(Protocol):
    """The part of the ledger that knows the store: `SqliteLedger`."""

    def stored_offsets(self) -> Mapping[str, LogOffset]:
        """Return, by the log's name, the offset before which everything is stored."""
        ...

    def table_identities(self) -> Mapping[str, str]:
        """Return the identity of each table that batches were committed to."""
        ...

    def losses(self) -> Sequence[str]:
        """Return what the tables lack, one sentence each."""
        ...

    def bind_store(
        self,
        identities: Mapping[str, str],
        *,
        losses: Sequence[str] = (),
        reload: bool = False,
        requeued: Iterable[RequeuedItem] = (),
    ) -> None:
        """Bind the ledger to tables, durably; with `reload` nothing counts as loaded.

        The loader then passes over the `requeued` items where they were rejected.
        """
        ...


class LogHistory(Protocol):
    """The part of the logs' reader that knows what was deleted: `SegmentReader`."""

    def has_whole_history(self, log: str) -> bool:
        """Return whether no segment of a log was deleted yet. Raises `OSError`."""
        ...

    def publish_loaded_offsets(self, offsets: Mapping[str, LogOffset]) -> None:
        """Truncate every log to what is loaded."""
        ...


class StoreRecovery:
    """Loads a store that was created again from the logs, or records what it lacks.

    chDB creates missing tables silently, while the ledger says that their events are stored. An
    item of the quarantine that was retried is loaded from the log of retried entries alone.
    `can_reload` is False where machines share claims on what they have stored: events that were
    loaded again would be dropped as repeated. `read_requeued_items` returns what the log of retried
    entries has.
    """

    def __init__(
        self,
        chdb: ChdbInstance,
        *,
        ledger: BoundLedger,
        logs: LogHistory,
        read_requeued_items: Callable[[], Iterable[RequeuedItem]],
        can_reload: bool,
        log: Logger,
    ) -> None:
        self._chdb = chdb
        self._can_reload = can_reload
        self._ledger = ledger
        self._logs = logs
        self._read_requeued_items = read_requeued_items
        self._log = log
        self._losses: Sequence[str] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the store has every event that the ledger counts as stored."""
        return not self._losses

    def check_complete(self) -> None:
        """Raise `StoreUnavailable` while events are missing and no operator accepted that."""
        if self._losses:
            raise StoreUnavailable("the store lacks events; `headrace verify` says which")

    def reconcile(self, create_tables: Callable[[], None]) -> None:
        """Compare the prepared tables with the ledger. Blocking; before anything is loaded.

        `create_tables` creates missing tables. Safe to repeat after a crash: the ledger is bound
        to the tables last. Raises `StoreUnavailable` or `OperatorError`.
        """
        with raising_store_unavailable("cannot read the store"):
            self._reconcile(create_tables)
        self._losses = self._ledger.losses()
        for loss in self._losses:
            self._log.error("store_incomplete", reason=loss)
        self._logs.publish_loaded_offsets(self._ledger.stored_offsets())

    def _reconcile(self, create_tables: Callable[[], None]) -> None:
        found = read_identities(table_directories(self._chdb))
        lost = self._lost_tables(found)
        if not lost:
            self._bind(found)
            return
        truncated = [
            log for log in self._ledger.stored_offsets() if not self._logs.has_whole_history(log)
        ]
        self._log.error("store_created_again", tables=sorted(lost), truncated_logs=truncated)
        is_partial = len(lost) < len(found)
        if not self._can_reload or (truncated and is_partial):
            self._ledger.bind_store(found, losses=_losses(lost, "the events stored earlier"))
            return
        if is_partial:  # the logs have everything: load all tables again
            forget_metadata(self._chdb.directory)
            for table in found.keys() - lost:
                self._chdb.execute(f"DROP TABLE `{DATABASE}`.`{table}` SYNC")
            create_tables()
            found = read_identities(table_directories(self._chdb))
        losses = _losses(lost, "the events that the logs no longer have") if truncated else ()
        requeued = list(self._read_requeued_items())
        self._ledger.bind_store(found, losses=losses, reload=True, requeued=requeued)

    def _lost_tables(self, found: Mapping[str, str]) -> set[str]:
        """Return the tables that are not those the ledger has loaded into.

        A ledger of an earlier version knows none: then only a store without any row is new.
        """
        if not self._ledger.stored_offsets():
            return set()
        known = self._ledger.table_identities()
        if known:
            return {table for table, identity in found.items() if known.get(table) != identity}
        return set() if self._has_rows(found) else set(found)

    def _has_rows(self, tables: Iterable[str]) -> bool:
        return any(
            self._chdb.execute(f"SELECT 1 FROM `{DATABASE}`.`{table}` LIMIT 1")  # noqa: S608 - ours
            for table in tables
        )

    def _bind(self, found: Mapping[str, str]) -> None:
        if self._ledger.table_identities() != found:
            self._ledger.bind_store(found)


def _losses(tables: Iterable[str], what: str) -> list[str]:
    return [
        f"the table {table} was missing and was created again without {what}: restore a backup, "
        "or accept the loss with `headrace verify --accept-loss`"
        for table in sorted(tables)
    ]
