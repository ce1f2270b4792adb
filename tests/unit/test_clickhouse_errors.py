"""What an error of a server of ClickHouse is to whoever asked."""

import pytest

from millrace.adapters.clickhouse.connection import NO_ANSWER
from millrace.adapters.clickhouse.reader import select_error
from millrace.adapters.embedded.engine import EngineFailure
from millrace.base.errors import QueryTimedOut, QueryTooLarge, StoreUnavailable


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (159, QueryTimedOut),
        (241, QueryTooLarge),
        (202, StoreUnavailable),
        (279, StoreUnavailable),
        (369, StoreUnavailable),
        (473, StoreUnavailable),
        (745, StoreUnavailable),
        (62, type(None)),
        (NO_ANSWER, type(None)),
    ],
)
def test_a_failed_select_is_told_by_what_its_caller_can_do(code: int, error: type[object]) -> None:
    assert type(select_error(EngineFailure(code, "NAME", "words"))) is error
