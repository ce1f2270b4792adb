"""What is known while a block runs: fields of its items, and that the client itself runs."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_FIELDS: ContextVar[Mapping[str, object]] = ContextVar("headrace_fields")
_NO_FIELDS: Mapping[str, object] = {}
_IS_OWN: ContextVar[bool] = ContextVar("headrace_is_own", default=False)


def current_fields() -> Mapping[str, object]:
    """Return the fields of the innermost `with_fields` block, with those of the blocks around."""
    return _FIELDS.get(_NO_FIELDS)


def is_own_work() -> bool:
    """Return whether the client itself runs, such as a request of its own."""
    return _IS_OWN.get()


@contextmanager
def own_work() -> Generator[None]:
    """Mark what runs within the block as the client's: what it logs is not reported."""
    token = _IS_OWN.set(True)
    try:
        yield
    finally:
        _IS_OWN.reset(token)


@contextmanager
def with_fields(**fields: object) -> Generator[None]:
    """Give these fields to every item of the block that can have them and does not name them.

    They follow the block into coroutines and tasks that it starts, as context variables do.
    """
    token = _FIELDS.set({**current_fields(), **fields})
    try:
        yield
    finally:
        _FIELDS.reset(token)
