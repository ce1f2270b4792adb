"""Knows whether the rollup of the embedded store is whole, and rebuilds it in the background.

An insert does not sync the files of its projection, so a power cut leaves parts whose projection
is missing or broken. chDB skips a missing one silently and fails at a broken one: while the rollup
is not whole, selects compute it from the events.
"""

import contextlib
import threading
from collections.abc import Generator
from typing import Final

from headrace.adapters.store.chdb.connection import ChdbInstance, ChdbSession
from headrace.adapters.store.dialect.ddl import DATABASE
from headrace.adapters.store.dialect.errors import ClickHouseError
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.adapters.store.dialect.rollup_ddl import (
    START_REBUILD,
    count_parts_without_rollup,
    count_projections,
    select_unfinished_rebuilds,
)
from headrace.adapters.store.dialect.statements import render
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import get_logger
from headrace.formats.rollup_columns import ROLLUP
from headrace.model.catalog import EVENTS

_POLL_S: Final = 0.2
_RETRY_S: Final = 10.0
"""The pause after a failed attempt, for example on a full disk."""


class Rollup:
    """The state of the projection of one database. Its methods may be called from any thread."""

    def __init__(self, chdb: ChdbInstance, *, database: str = DATABASE) -> None:
        self._chdb = chdb
        self._database = database
        self._is_whole = False
        self._is_reopening = False
        self._state_changed = threading.Event()

    @property
    def is_whole(self) -> bool:
        """Whether selects may read the projection. False until the first `check`."""
        return self._is_whole

    @contextlib.contextmanager
    def reopening(self) -> Generator[None]:
        """Reopen the table within the context: its parts are unknown until the end, then checked.

        Raises `ClickHouseError`.
        """
        self._is_reopening = True
        self.distrust()
        try:
            yield
        finally:
            self._is_reopening = False
        self.check()

    def distrust(self) -> None:
        """Make selects compute the rollup from the events until the next `check`."""
        self._is_whole = False
        self._state_changed.set()

    def check(self) -> int:
        """Return the number of parts whose projection is missing or broken; 0 makes it whole.

        Raises `ClickHouseError`.
        """
        database = quote_literal(self._database)
        ((has_projection,),) = self._chdb.execute(count_projections(database))
        ((parts,),) = self._chdb.execute(count_parts_without_rollup(database))
        self._is_whole = not (has_projection and parts) and not self._is_reopening
        self._state_changed.set()
        return int(parts) if has_projection else 0

    def wait_for_change(self) -> None:
        """Return when the state may have changed since the last call."""
        self._state_changed.wait()
        self._state_changed.clear()

    def rebuild(self, stop: threading.Event, *, checks_bytes: bool = False) -> bool:
        """Rebuild the projection where it is missing or broken. Blocking.

        With `checks_bytes` all parts are read first: chDB does not notice altered bytes when it
        loads a part. Inserts, merges and selects go on meanwhile. Setting `stop` ends it early;
        chDB continues the rebuilding at the next start. Return whether the rollup is whole.
        Raises `ClickHouseError`.
        """
        session = self._chdb.session(self._database, writable=True)
        try:
            if checks_bytes:
                self._check_bytes(session, stop)
            while not stop.is_set() and (parts := self.check()):
                if not session.execute(select_unfinished_rebuilds(quote_literal(self._database))):
                    get_logger().warning("rollup_rebuilding", parts=parts)
                    session.execute(render(START_REBUILD))
                stop.wait(_POLL_S)
        finally:
            session.close()
        return self._is_whole

    def _check_bytes(self, session: ChdbSession, stop: threading.Event) -> None:
        """Compare all parts with their checksums; chDB then marks a broken projection as broken.

        A part that is merged or mutated before or while it is checked passes the bytes on, but not
        the mark, so its successor is checked, too. Parts of later inserts need no check.
        """
        checked = set[str]()
        last_block = self._last_block(session)
        may_pass_on = set[str]()
        while not stop.is_set():
            running = self._parts_in_progress(session, last_block)
            names = self._active_parts(session, last_block) - checked
            for name in sorted(names):
                if stop.is_set():
                    return
                self._check_part(session, name)
            checked |= names
            if names:
                may_pass_on = self._parts_in_progress(session, last_block)
            elif not running & may_pass_on:
                return
            else:
                stop.wait(_POLL_S)

    def _check_part(self, session: ChdbSession, name: str) -> None:
        try:
            session.execute(f"CHECK TABLE `{EVENTS.name}` PART {quote_literal(name)}")
        except ClickHouseError as failure:  # replaced meanwhile, or it cannot be read
            get_logger().info("part_not_checked", part=name, code=failure.code)

    def _last_block(self, session: ChdbSession) -> int:
        """Return the number of the newest insert into `events`."""
        ((last_block,),) = session.execute(
            "SELECT max(max_block_number) FROM system.parts WHERE active AND "  # noqa: S608 - our own names
            f"{self._of_events()}"
        )
        return int(last_block)

    def _active_parts(self, session: ChdbSession, last_block: int) -> set[str]:
        """Return the names of the parts that have rows of inserts up to `last_block`."""
        names = session.execute(
            "SELECT name FROM system.parts WHERE active AND "  # noqa: S608 - our own names
            f"min_block_number <= {last_block} AND {self._of_events()}"
        )
        return {name for (name,) in names}

    def _parts_in_progress(self, session: ChdbSession, last_block: int) -> set[str]:
        """Return the names of the parts of such rows that merges and mutations are making."""
        names = session.execute(
            "SELECT result_part_name FROM system.merges WHERE "  # noqa: S608 - our own names
            f"toInt64(splitByChar('_', result_part_name)[2]) <= {last_block} "
            f"AND {self._of_events()}"
        )
        return {name for (name,) in names}

    def _of_events(self) -> str:
        return f"table = '{EVENTS.name}' AND database = {quote_literal(self._database)}"


class RollupRebuilder:
    """A thread that rebuilds the rollup whenever it is not whole."""

    def __init__(self, rollup: Rollup) -> None:
        self._rollup = rollup
        self._stop = threading.Event()
        self._checks_bytes = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"rebuild-{ROLLUP}", daemon=True)

    def start(self) -> None:
        """Start the thread; the tables must have been prepared."""
        self._thread.start()

    @property
    def is_whole(self) -> bool:
        """Whether selects may read the rollup."""
        return self._rollup.is_whole and not self._checks_bytes.is_set()

    def request_rebuild(self) -> None:
        """Rebuild what cannot be read, because a select met it; from any thread."""
        self._checks_bytes.set()
        self._rollup.distrust()

    def close(self) -> None:
        """Stop the thread and wait for its current statement. May be called twice."""
        self._stop.set()
        self._rollup.distrust()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self.is_whole:
                self._rollup.wait_for_change()
                continue
            try:
                if self._rollup.rebuild(self._stop, checks_bytes=self._checks_bytes.is_set()):
                    self._checks_bytes.clear()
                    get_logger().info("rollup_rebuilt")
            except (ClickHouseError, StoreUnavailable) as failure:
                get_logger().error("rollup_not_rebuilt", reason=str(failure))
                self._stop.wait(_RETRY_S)
