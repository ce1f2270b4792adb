"""What the senders of the crash test make of the responses."""

import pytest

from chaos.event_journal import Bucket, EventJournal, Fate
from chaos.load import Request, Traffic
from chaos.query_client import Account

REQUEST = Request("/track", Bucket("events", "/1"), ("1-0-1-0", "1-0-1-1"), b"[]", {}, True)


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        (b'{"count": 2}', []),
        (b'{"count": 1}', ["""2 events were answered with b'{"count": 1}'"""]),
        (b"{}", ["2 events were answered with b'{}'"]),
        (b"[]", ["2 events were answered with b'[]'"]),
        (b"<html>", ["2 events were answered with b'<html>'"]),
    ],
    ids=["right", "too few", "no count", "no object", "no JSON"],
)
def test_acknowledgement_of_another_number_is_a_problem(body: bytes, problems: list[str]) -> None:
    traffic = Traffic(port=1, account=Account("website", "key"), journal=EventJournal())

    assert traffic.record_response(REQUEST, 200, body, 0) is Fate.ACKNOWLEDGED
    assert traffic.problems == problems
