"""Which operation is in progress in a round."""

from collections.abc import Callable, Mapping
from random import Random

from chaos.fault import Fault
from chaos.operations.commands import EventImport, Prune
from chaos.operations.erasure import SessionErasure
from chaos.operations.export import EventExport
from chaos.operations.operation import Operation, OperationContext

_PROBABILITY = 0.5

REQUESTS: Mapping[str, Callable[[OperationContext], Operation]] = {
    "erase a session": SessionErasure,
    "export all events": EventExport,
}
COMMANDS: Mapping[str, Callable[[OperationContext], Operation]] = {
    "import events": EventImport,
    "prune a website": Prune,
}
"""These write to the data directory from a process of their own."""


def choose_operation(random: Random, fault: Fault) -> str | None:
    """Return the name of an operation that may be in progress at a fault, in half of the rounds."""
    possible = [*REQUESTS, *(COMMANDS if fault.allows_commands else ())]
    return random.choice(possible) if random.random() < _PROBABILITY else None


def create_operation(name: str, context: OperationContext) -> Operation:
    """Create an operation by its name."""
    return {**REQUESTS, **COMMANDS}[name](context)
