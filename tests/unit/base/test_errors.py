"""Tests of the wording of causes."""

import errno
import os

import pytest

from headrace.base.errors import StoreUnavailable, system_reason


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), "/data"), "is a directory"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "no space left on device"),
        (OSError("Cut off"), "cut off"),
        (MemoryError(), "out of memory"),
        (StoreUnavailable("The store is closed"), "The store is closed"),
    ],
)
def test_reason_is_the_end_of_a_sentence_without_number_and_path(
    error: Exception, reason: str
) -> None:
    assert system_reason(error) == reason
