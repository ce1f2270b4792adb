"""What a program logs or does not catch is reported to /errors."""

import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headrace_client import Headrace, HeadraceHandler, report_uncaught
from headrace_client.testing import FakeHeadrace


@pytest.fixture
def client(server: FakeHeadrace) -> Iterator[Headrace]:
    with Headrace(server.url, "key", outbox=None, linger_s=0.0) as one:
        yield one


@pytest.fixture
def logger(client: Headrace) -> Iterator[logging.Logger]:
    one = logging.getLogger("shop")
    handler = HeadraceHandler(client, logging.WARNING)
    one.addHandler(handler)
    yield one
    one.removeHandler(handler)


def reported(client: Headrace, server: FakeHeadrace, *fields: str) -> list[tuple[Any, ...]]:
    assert client.flush()
    return [tuple(item.get(field) for field in fields) for item in server.items("/errors")]


def fail() -> None:
    raise ValueError("broken")


FAIL_LINE = fail.__code__.co_firstlineno + 1


def test_records_of_the_level_are_reported_with_their_level(
    client: Headrace, server: FakeHeadrace, logger: logging.Logger
) -> None:
    logger.info("not reported")
    logger.warning("stock is %d", 3)
    logger.error("broken")
    logger.critical("down")

    assert reported(client, server, "message", "level", "filename") == [
        ("stock is 3", "warning", __file__),
        ("broken", "error", __file__),
        ("down", "fatal", __file__),
    ]


def test_exception_of_a_record_gives_stack_type_and_line(
    client: Headrace, server: FakeHeadrace, logger: logging.Logger
) -> None:
    try:
        fail()
    except ValueError:
        logger.exception("cannot read %s", "prices")

    fields = ("message", "errorType", "lineno", "level")
    assert reported(client, server, *fields) == [
        ("cannot read prices", "ValueError", FAIL_LINE, "error")
    ]
    assert server.items("/errors")[0]["stack"].endswith("ValueError: broken\n")


@pytest.fixture
def everything(client: Headrace) -> Iterator[None]:
    """Report the records of all loggers and levels."""
    root, handler = logging.getLogger(), HeadraceHandler(client, logging.DEBUG)
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield
    root.setLevel(level)
    root.removeHandler(handler)


@pytest.mark.parametrize("names_threads", [True, False], ids=["named threads", "unnamed threads"])
@pytest.mark.usefixtures("everything")
def test_what_the_client_logs_is_not_reported(
    client: Headrace,
    server: FakeHeadrace,
    monkeypatch: pytest.MonkeyPatch,
    names_threads: bool,
) -> None:
    monkeypatch.setattr(logging, "logThreads", names_threads)
    server.reply_once(500)
    client.track("a")
    assert client.flush()

    assert reported(client, server, "message") == []


@pytest.mark.usefixtures("everything")
def test_what_a_query_logs_is_not_reported(client: Headrace, server: FakeHeadrace) -> None:
    client.query({}, website_id="web_1")

    assert reported(client, server, "message") == []


def test_handler_of_a_closed_client_does_not_raise(
    client: Headrace, logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    client.close()
    logger.error("broken")
    assert "ClientClosed" in capsys.readouterr().err


def test_uncaught_exceptions_are_reported_and_handled_as_before(
    client: Headrace, server: FakeHeadrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled: list[str] = []

    def handle(_kind: object, error: object, _traceback: object) -> None:
        handled.append(str(error))

    def handle_in_thread(arguments: threading.ExceptHookArgs) -> None:
        handled.append(str(arguments.exc_value))

    monkeypatch.setattr(sys, "excepthook", handle)
    monkeypatch.setattr(threading, "excepthook", handle_in_thread)
    before = (sys.excepthook, threading.excepthook)

    restore = report_uncaught(client)
    sys.excepthook(KeyError, KeyError("main"), None)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt("stop"), None)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    restore()

    assert (sys.excepthook, threading.excepthook) == before
    assert handled == ["'main'", "stop", "broken"]
    assert reported(client, server, "message", "errorType", "level", "lineno") == [
        ("'main'", "KeyError", "fatal", None),
        ("broken", "ValueError", "fatal", FAIL_LINE),
    ]


def print_nothing(*_: object) -> None:
    """Replace a hook."""


def test_report_of_uncaught_exceptions_ends_within_hooks_that_came_later(
    client: Headrace, server: FakeHeadrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", print_nothing)
    monkeypatch.setattr(threading, "excepthook", print_nothing)
    end_first, end_second = report_uncaught(client), report_uncaught(client)

    end_first()
    sys.excepthook(KeyError, KeyError("a"), None)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    end_second()
    sys.excepthook(KeyError, KeyError("b"), None)

    assert reported(client, server, "message") == [("'a'",), ("broken",)]
