"""`python -m headrace_client OUTBOX`: shows what is in an outbox, also while programs use it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from headrace_client.delivery.database import Database
from headrace_client.delivery.outbox import Outbox
from headrace_client.errors import HeadraceClientError

_MAX_LISTED = 10_000
_MAX_BYTES = 1 << 40  # requeueing must fit in an outbox of any limit
_BUSY_TIMEOUT_S = 10.0


def _count(outbox: Outbox) -> list[object]:
    return [outbox.counts()._asdict()]


def _list_refused(outbox: Outbox) -> list[object]:
    return [one._asdict() for one in outbox.refused(_MAX_LISTED)]


def _requeue(outbox: Outbox) -> list[object]:
    return [{"requeued": outbox.requeue_refused()}]


def _delete(outbox: Outbox) -> list[object]:
    return [{"deleted": outbox.delete_refused()}]


ACTIONS: Mapping[str, Callable[[Outbox], list[object]]] = {
    "counts": _count,
    "refused": _list_refused,
    "requeue": _requeue,
    "delete": _delete,
}


def main() -> int:
    """Run an action and print a JSON object a line. Exits 1 where the outbox cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m headrace_client", description=__doc__)
    parser.add_argument("outbox", type=Path)
    parser.add_argument(
        "action",
        nargs="?",
        default="counts",
        choices=ACTIONS,
        help="list the refused items, let the programs send them again, or delete them "
        "[default: counts]",
    )
    options = parser.parse_args()
    if not options.outbox.is_file():
        sys.stderr.write(f"cannot open {options.outbox}: no such file\n")
        return 1
    database = Database(
        options.outbox,
        synchronous="full",
        max_bytes=_MAX_BYTES,
        busy_timeout_s=_BUSY_TIMEOUT_S,
    )
    try:
        for line in ACTIONS[options.action](Outbox(database)):
            sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    except HeadraceClientError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        database.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
