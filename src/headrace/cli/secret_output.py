"""Shows a secret that nobody can see again, or undoes what has it."""

import contextlib
from collections.abc import Callable, Generator

from headrace.base.errors import OperatorError, system_reason


@contextlib.contextmanager
def undone_unless_shown(undo: Callable[[], None], outcome: str) -> Generator[None]:
    """Call `undo` where the block cannot print: nobody would ever have the secret.

    Raises `OperatorError` with the reason and the outcome.
    """
    try:
        yield
    except OSError as error:
        undo()
        reason = system_reason(error)
        raise OperatorError(f"cannot write the output: {reason}; {outcome}") from error
    except BaseException:
        undo()
        raise
