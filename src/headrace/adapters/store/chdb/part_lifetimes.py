"""Lets chDB remove replaced parts at once, while a command uses the store alone."""

import os
from typing import Any, Final

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.adapters.store.chdb.files.metadata_copy import make_metadata_durable
from headrace.adapters.store.dialect.ddl import DATABASE, OLD_PARTS_LIFETIME_S
from headrace.adapters.store.dialect.failures import raising_store_unavailable
from headrace.adapters.store.dialect.parameters import quote_literal
from headrace.adapters.store.dialect.statements import ModifySettings, Settings, Target, render
from headrace.model.storage import STORAGE_TABLES

_LIFETIME: Final = "old_parts_lifetime"
_CLEANUP: Final[Settings] = {
    "cleanup_delay_period": 1,
    "cleanup_delay_period_random_add": 0,
    "max_cleanup_delay_period": 1,
}
"""How often, in seconds, chDB looks for such files: 30 to 300 otherwise."""


class ChdbPartLifetimes:
    """The `PartLifetimes` of a store that no service uses.

    A service keeps replaced parts for minutes, because a part that replaced them may not be on disk
    yet. `shorten` first makes everything durable. A killed command leaves its settings; each engine
    process restores the usual ones when it starts.
    """

    def __init__(self, chdb: ChdbInstance, *, database: str = DATABASE, may_shorten: bool) -> None:
        self._chdb = chdb
        self._database = database
        self._may_shorten = may_shorten
        self._is_shortened = False

    def shorten(self) -> None:
        """Let the files of replaced parts go; see `PartLifetimes.shorten`.

        A table takes the new intervals when it is opened.
        """
        if not self._may_shorten or self._is_shortened:
            return
        os.sync()
        for table in STORAGE_TABLES:
            self._modify(table, {_LIFETIME: 1, **_CLEANUP})
            self._execute(f"DETACH TABLE `{self._database}`.`{table}` SYNC")
            self._execute(f"ATTACH TABLE `{self._database}`.`{table}`")
        self._make_durable()
        self._is_shortened = True

    def restore(self) -> None:
        """Set the usual settings where a table has others; see `PartLifetimes.restore`."""
        self._is_shortened = False
        sql = (
            f"SELECT name FROM system.tables WHERE database = {quote_literal(self._database)} "  # noqa: S608 - our own names
            "AND position(create_table_query, 'cleanup_delay_period') > 0"
        )
        tables = self._execute(sql)
        for (table,) in tables:
            self._modify(table, {_LIFETIME: OLD_PARTS_LIFETIME_S})
            self._execute(
                f"ALTER TABLE `{self._database}`.`{table}` RESET SETTING {', '.join(_CLEANUP)}"
            )
        if tables:
            self._make_durable()

    def _make_durable(self) -> None:
        with raising_store_unavailable("cannot sync the store"):
            make_metadata_durable(self._chdb.directory, self._database)

    def _modify(self, table: str, settings: Settings) -> None:
        self._execute(render(ModifySettings(table, settings), Target(database=self._database)))

    def _execute(self, sql: str) -> list[list[Any]]:
        with raising_store_unavailable():
            return self._chdb.execute(sql)
