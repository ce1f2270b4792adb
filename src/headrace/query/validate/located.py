"""The paths of errors: which entry of a list in the body breaks a rule."""

from collections.abc import Generator
from contextlib import contextmanager

from headrace.base.errors import InvalidQuery


@contextmanager
def located(path: str) -> Generator[None]:
    """Give the errors of a block this path, except those that have one of a part of it."""
    try:
        yield
    except InvalidQuery as error:
        raise error.located(path) from None
