"""Fingerprints of errors that are not stored yet, by the expression that the store uses."""

from collections.abc import Sequence
from typing import Final, Protocol

from headrace.adapters.store.dialect.fingerprint import SELECT_FINGERPRINTS
from headrace.base.errors import StoreUnavailable
from headrace.base.logs import Logger
from headrace.model.plan import CompiledQuery
from headrace.ports.live import ErrorTexts, UnknownFingerprints

LIVE_TIMEOUT_S: Final = 5.0
"""How long a server may take. The thread of the loader waits for it."""


class RunsSelects(Protocol):
    """Runs a SELECT on a thread of its own; `RowFinder` is one."""

    def select(self, query: CompiledQuery) -> Sequence[Sequence[object]]:
        """Run a SELECT and return its rows. Raises `StoreUnavailable`."""
        ...

    def close(self) -> None:
        """Close the connections; the next SELECT opens others."""
        ...


class StoreFingerprints:
    """`ErrorFingerprints` by a SELECT without a table: the expression stands once, in SQL.

    Closes its connection after each call: chDB must have none left when the process ends.
    """

    def __init__(self, store: RunsSelects, *, log: Logger) -> None:
        self._store = store
        self._log = log

    def of(self, errors: Sequence[ErrorTexts]) -> Sequence[str | None]:
        """Return the fingerprint of each error; None for all while the store is away."""
        types, messages, stacks = (list(texts) for texts in zip(*errors, strict=True))
        parameters = {"types": types, "messages": messages, "stacks": stacks}
        try:
            rows = self._store.select(CompiledQuery(SELECT_FINGERPRINTS, parameters, ()))
        except StoreUnavailable as error:
            self._log.warning("fingerprints_unknown", reason=str(error))
            return UnknownFingerprints().of(errors)
        finally:
            self._store.close()
        return [str(fingerprint) for (fingerprint,) in rows]
