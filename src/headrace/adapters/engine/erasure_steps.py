"""What runs erasures in the engine process calls: the steps of one, and the other machines."""

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from headrace.model.erasure import ErasureRequest
from headrace.ports.event_log import LogOffset
from headrace.ports.rows.erasure import Erasure

LeftoversT = TypeVar("LeftoversT")


class ErasureSteps(Protocol, Generic[LeftoversT]):
    """The steps of erasures: `erasure.service.ErasureService`. Blocking, one at a time."""

    def begin(self, request: ErasureRequest, log_ends: Mapping[str, LogOffset]) -> Erasure:
        """Decide what is erased, and note it durably; not for a dry run."""
        ...

    def resume(self, erasure: Erasure, log_ends: Mapping[str, LogOffset]) -> Erasure:
        """Begin to delete it once more."""
        ...

    def delete(self, erasure: Erasure) -> None:
        """Begin to delete the rows of its plan, without loading anything; may be repeated."""
        ...

    def pending(self) -> Sequence[Erasure]:
        """Return the erasures that are not done."""
        ...

    def is_deleting(self, erasure: Erasure) -> bool:
        """Return whether answers may still have rows. Raises `DeletionLost`: begin it again."""
        ...

    def note_clean(self, erasure: Erasure) -> Erasure:
        """Note that answers have no rows any more."""
        ...

    def clean_files(self, erasure: Erasure) -> LeftoversT:
        """Take the rows out of files; return those that go away by themselves."""
        ...

    def are_files_left(self, leftovers: LeftoversT) -> bool:
        """Return whether some of these still exist."""
        ...

    def forget_identifier(self, erasure: Erasure) -> Erasure:
        """Note that this machine has finished."""
        ...

    def finish(self, erasure: Erasure) -> Erasure:
        """Note that the erasure is done."""
        ...

    def note_failure(self, erasure: Erasure, reason: str) -> Erasure:
        """Note why a step failed."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class Machines(Protocol):
    """The other machines that erase: `erasure.machines.ErasingMachines`. As the steps."""

    def join(self) -> None:
        """Take part in the erasures of all machines."""
        ...

    def adopt(self) -> Sequence[Erasure]:
        """Return erasures of other machines that are new here."""
        ...

    def note_clean(self, erasure: Erasure) -> None:
        """Tell the others to erase, and that answers have no rows of this machine any more."""
        ...

    def are_answers_clean(self, erasure: Erasure) -> bool:
        """Return whether answers have no rows of others, either."""
        ...

    def note_files_clean(self, erasure: Erasure) -> None:
        """Tell the others that this machine has finished."""
        ...

    def are_files_clean(self, erasure: Erasure) -> bool:
        """Return whether the others have finished, too."""
        ...

    def describe_absent(self, erasure: Erasure) -> str:
        """Return which of the others have to be started for that, "" for none."""
        ...

    def with_all_parts(self, erasure: Erasure) -> Erasure:
        """Return an erasure with what all machines found."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...
