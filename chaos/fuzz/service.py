"""The service under the fuzzer: started with its account, and looked at afterwards."""

import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from chaos.fuzz.cases import Account
from testing.service import Service, running_service, wait_until

_SETTINGS: Final = {"HEADRACE_QUERY_RATE_LIMIT": "100000000"}
_READY_TIMEOUT_S: Final = 30.0
"""An engine that takes over a second to answer is unavailable for so long, without any fault."""

SIGNS_OF_FAILURE: Final = (
    "Traceback",
    "load_failed",
    "process_died",
    "process_hung",
    "items_quarantined",
)
"""What the log of a service says of a failure: an exception, or the name of an event."""


class Subject(NamedTuple):
    """A running service and what its requests refer to."""

    service: Service
    account: Account


@contextmanager
def fuzzed_service() -> Generator[Subject]:
    """Start a service in a temporary directory and stop it at the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="headrace-fuzz-") as directory,
        running_service(Path(directory) / "data", settings=_SETTINGS) as service,
    ):
        yield Subject(service, make_account(service))


def make_account(service: Service) -> Account:
    """Create a public and a private website, and a key that may send and query."""
    return Account(
        public_website=service.website(public=True),
        private_website=service.website(),
        key=service.key().secret,
    )


def find_damage(service: Service, pids_before: list[int]) -> Iterator[str]:
    """Yield what shows that the service has failed: processes that ended, lines of its log."""
    if child_pids(service) != pids_before:
        yield "a process ended and was restarted"
    try:
        wait_until(service.is_ready, "the service is ready", timeout_s=_READY_TIMEOUT_S)
    except AssertionError as error:
        yield str(error)
    for line in service.log_text().splitlines():
        if any(sign in line for sign in SIGNS_OF_FAILURE):
            yield f"its log: {line[:500]}"


def child_pids(service: Service) -> list[int]:
    """Return the ids of all workers and of the engine."""
    return [*service.child_pids("worker"), *service.child_pids("engine")]
