"""The erasures that machines share, in their directory, which is opened when they are needed."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.base.clock import Clock
from headrace.base.errors import OperatorError, StoreUnavailable
from headrace.base.settings import Settings
from headrace.ports.rows.erasure import Erasure
from headrace.ports.rows.shared_erasures import ErasurePart, Machine, SharedErasures
from headrace.wiring.shared import open_configured_directory

if TYPE_CHECKING:
    from headrace.adapters.directory.sql_directory import SqlDirectory


class DirectoryErasures:
    """The `SharedErasures` of the configured directory. Opens it at the first call."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._directory: SqlDirectory | None = None

    def agree_on_key(self, own: bytes) -> bytes:
        """Return the key of all machines; see `SharedErasures.agree_on_key`."""
        with self._opened() as shared:
            return shared.agree_on_key(own)

    def note_seen(self, machine_id: str) -> None:
        """Note that a machine runs."""
        with self._opened() as shared:
            shared.note_seen(machine_id)

    def machines(self) -> Sequence[Machine]:
        """Return all machines that ever ran."""
        with self._opened() as shared:
            return shared.machines()

    def forget_machine(self, machine: Machine) -> bool:
        """Note that a machine is gone for good; see `SharedErasures.forget_machine`."""
        with self._opened() as shared:
            return shared.forget_machine(machine)

    def announce(self, erasure: Erasure) -> None:
        """Let all machines know an erasure."""
        with self._opened() as shared:
            shared.announce(erasure)

    def ids(self) -> frozenset[str]:
        """Return the ids of all erasures."""
        with self._opened() as shared:
            return shared.ids()

    def get(self, erasure_id: str) -> Erasure | None:
        """Return an erasure; see `SharedErasures.get`."""
        with self._opened() as shared:
            return shared.get(erasure_id)

    def put_part(self, erasure_id: str, part: ErasurePart) -> None:
        """Store how far a machine is with an erasure."""
        with self._opened() as shared:
            shared.put_part(erasure_id, part)

    def parts(self, erasure_id: str) -> Sequence[ErasurePart]:
        """Return the parts of an erasure."""
        with self._opened() as shared:
            return shared.parts(erasure_id)

    def close(self) -> None:
        """Close the directory if it is open."""
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    @contextmanager
    def _opened(self) -> Generator[SharedErasures]:
        try:
            if self._directory is None:
                self._directory = open_configured_directory(self._settings, self._clock)
            yield self._directory.shared_erasures
        except OperatorError as error:
            raise StoreUnavailable(str(error)) from error
