"""Running long pure computations beside the event loop."""

from collections.abc import Callable
from typing import Protocol, TypeVar

ResultT = TypeVar("ResultT")
ArgumentT = TypeVar("ArgumentT")


class BackgroundProcess(Protocol):
    """Runs functions where they hold up neither the event loop nor the interpreter it needs."""

    async def run(self, function: Callable[[ArgumentT], ResultT], argument: ArgumentT) -> ResultT:
        """Return the result of a function of a module, or raise what it raises.

        Function, argument and result must be picklable. Raises `Unavailable` where the process
        ended meanwhile; the function may have run. Calls run one at a time, in any order; used
        from one event loop. Cancelling the call does not end the function.
        """
        ...
