"""The crash test asks for erasures only while its senders may send."""

import threading
import time
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.event_journal import Bucket, EventJournal, Fate
from chaos.load import Traffic
from chaos.operations.erasure import SessionErasure
from chaos.operations.operation import OperationContext
from chaos.query_client import Account

RETRY_PAUSE_S = 0.01


def test_an_erasure_is_not_accepted_on_an_image_that_is_tried_before_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = EventJournal()
    kept.record(Bucket("events", "/1"), ["1-2-3"], Fate.ACKNOWLEDGED)
    status, was_called = [503], threading.Event()

    def send_request(*_arguments: Any, **_options: Any) -> Any:
        was_called.set()
        return SimpleNamespace(status=status[0])

    monkeypatch.setattr("chaos.operations.erasure.send_request", send_request)
    monkeypatch.setattr("chaos.operations.operation._RETRY_PAUSE_S", RETRY_PAUSE_S)
    traffic = Traffic(port=1, account=Account("website", "key"), journal=kept)
    service: Any = SimpleNamespace(recovery_timeout_s=30.0, port=1)
    random = Random(1)  # noqa: S311 - not a secret
    operation = SessionErasure(OperationContext(service, cast("Any", None), traffic, random, 2))
    assert operation.begin()
    assert was_called.wait(30)
    with traffic.paused():
        was_called.clear()
        status[0] = 202
        time.sleep(10 * RETRY_PAUSE_S)  # so often it would have been asked for
        assert not was_called.is_set()
    operation.finish()
    assert was_called.is_set()
    assert kept.totals() == {Fate.ERASED: 1}
