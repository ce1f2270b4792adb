"""Fields that every item gets while a block runs, such as the visitor of a web request."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_FIELDS: ContextVar[Mapping[str, object]] = ContextVar("headrace_fields")
_NO_FIELDS: Mapping[str, object] = {}


def current_fields() -> Mapping[str, object]:
    """Return the fields of the innermost `with_fields` block, with those of the blocks around."""
    return _FIELDS.get(_NO_FIELDS)


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
