"""What an operation is, and what it acts on."""

import threading
import time
from collections.abc import Callable
from random import Random
from typing import NamedTuple, Protocol

from chaos.fault import GuaranteeViolated
from chaos.load import Traffic
from chaos.query_client import QueryClient
from chaos.service import Service

_RETRY_PAUSE_S = 0.5


class OperationContext(NamedTuple):
    """The objects that an operation acts on, and the number of the round."""

    service: Service
    query_client: QueryClient
    traffic: Traffic
    random: Random
    number: int


class Operation(Protocol):
    """Something that a caller or an operator has begun when a fault occurs."""

    def begin(self) -> bool:
        """Begin, and return while it is in progress. False if there is nothing to work on yet."""
        ...

    def finish(self) -> None:
        """Repeat what the fault interrupted until it is done, once the service has recovered.

        Raises `GuaranteeViolated`.
        """
        ...

    def abandon(self) -> None:
        """End what is in progress: the round has failed."""
        ...


class Attempts:
    """Calls a function in a thread until it returns True; for what must succeed in the end."""

    def __init__(self, attempt: Callable[[], bool], *, what: str, timeout_s: float) -> None:
        self._attempt = attempt
        self._what = what
        self._timeout_s = timeout_s
        self._is_done = False
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin with the first attempt."""
        self._thread.start()

    def join(self) -> None:
        """Wait until an attempt has succeeded. Raises `GuaranteeViolated` after the timeout."""
        self._thread.join(self._timeout_s)
        self._has_ended.set()
        self._thread.join()
        if not self._is_done:
            raise GuaranteeViolated(f"{self._what} did not succeed within {self._timeout_s:.0f} s")

    def abandon(self) -> None:
        """Make no further attempt."""
        self._has_ended.set()

    def _run(self) -> None:
        while not self._has_ended.is_set():
            if self._attempt():
                self._is_done = True
                return
            time.sleep(_RETRY_PAUSE_S)
