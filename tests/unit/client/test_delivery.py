"""What becomes of reported items, for each answer that the service can give."""

import logging
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace_client import ClientClosed, Headrace, OutboxFull, OutboxUnavailable, RefusedItem
from headrace_client.delivery.database import Database
from headrace_client.delivery.outbox import Outbox
from headrace_client.delivery.process_lock import ProcessLock
from headrace_client.items import ItemMaker
from headrace_client.testing import FakeHeadrace

INVALID: dict[str, Any] = {"status": "error", "message": "Invalid request body", "code": "INVALID"}
SCOPE_MISMATCH = {"status": "error", "message": "Website scope mismatch", "code": "SCOPE_MISMATCH"}


@pytest.fixture
def outbox(tmp_path: Path) -> Path:
    return tmp_path / "outbox.sqlite"


def connected(server: FakeHeadrace, outbox: Path | None = None, **options: Any) -> Headrace:
    options.setdefault("linger_s", 0.0)
    return Headrace(server.url, "key", outbox=outbox, **options)


def unreachable(outbox: Path | None, **options: Any) -> Headrace:
    return Headrace("http://127.0.0.1:9", "key", outbox=outbox, **options)


def numbers(server: FakeHeadrace) -> list[int]:
    return [one["properties"]["n"] for one in server.items()]


def refusals(client: Headrace) -> list[tuple[int, str, str]]:
    return [(one.item["properties"]["n"], one.code, one.message) for one in client.refused()]  # type: ignore[index]


def test_items_are_stored_with_the_id_and_the_time_of_the_call(
    server: FakeHeadrace, outbox: Path
) -> None:
    before_ms = time.time_ns() // 1_000_000
    with unreachable(outbox) as client:
        event_id = client.track("signup", {"plan": "pro"}, anonymous_id="anon_1")
        after_ms = time.time_ns() // 1_000_000
        client.close(0)

    with connected(server, outbox) as client:
        assert client.flush()

    (item,) = server.items()
    timestamp = item["timestamp"]
    assert before_ms <= timestamp <= after_ms
    assert item == {
        "name": "signup",
        "properties": {"plan": "pro"},
        "anonymousId": "anon_1",
        "timestamp": timestamp,
        "eventId": event_id,
    }


def test_items_that_wait_share_requests_of_the_batch_size(
    server: FakeHeadrace, outbox: Path
) -> None:
    with unreachable(outbox, max_batch_items=10) as client:
        client.track_many({"name": "row", "properties": {"n": n}} for n in range(25))
        client.close(0)

    with connected(server, outbox, max_batch_items=10) as client:
        assert client.flush()

    assert server.requests == [("/track", 10), ("/track", 10), ("/track", 5)]
    assert numbers(server) == list(range(25))


@pytest.mark.parametrize(("status", "stores"), [(500, True), (500, False), (0, True), (0, False)])
def test_request_with_unknown_outcome_is_repeated_and_stored_once(
    server: FakeHeadrace, status: int, stores: bool
) -> None:
    server.reply_once(status, stores=stores, times=2)
    with connected(server) as client:
        client.track_many([{"name": "a"}, {"name": "b"}])
        assert client.flush()
        stats = client.stats()

    assert server.requests == [("/track", 2)] * 3
    assert server.event_names() == ["a", "b"]
    assert stats[:3] == (0, 0, 2)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 415, 429, 502, 503])
def test_other_failures_are_repeated(server: FakeHeadrace, status: int) -> None:
    server.reply_once(status, headers={"Retry-After": "0"})
    with connected(server) as client:
        client.track("a")
        assert client.flush()

    assert server.requests == [("/track", 1)] * 2
    assert server.event_names() == ["a"]


def test_success_of_something_else_is_repeated_and_named(server: FakeHeadrace) -> None:
    server.reply_once(200, "<html>Sign in</html>")
    with connected(server) as client:
        client.track("a")
        while not (last_error := client.stats().last_error):
            time.sleep(0.01)
        assert client.flush()

    assert last_error == "200 OK, but the response is not from the service"
    assert server.event_names() == ["a"]


def test_item_that_is_refused_does_not_take_its_batch_along(server: FakeHeadrace) -> None:
    reported: list[RefusedItem] = []
    with connected(server, on_refused=reported.append) as client:
        bad = {"name": "n" * 257, "properties": {"n": 1}}
        client.track_many([{"name": "a"}, bad, {"name": "b"}])
        assert client.flush()

        assert client.refused() == reported
        assert client.stats()[:5] == (0, 1, 2, 1, 0)
        assert refusals(client) == [
            (1, "INVALID_BODY", "name: must be text of 1 to 256 characters")
        ]
    assert server.event_names() == ["a", "b"]
    assert server.requests == [("/track", 3), ("/track", 2)]


def test_each_refused_item_of_a_request_has_its_own_reason(server: FakeHeadrace) -> None:
    names = [{"field": "name", "message": "is too long", "index": 2}]
    ids = [{"field": "anonymousId", "message": "must be text", "index": 0}]
    server.reply_once(400, {**INVALID, "errors": [*names, *ids]})
    with connected(server) as client:
        client.track_many({"name": "a", "properties": {"n": n}} for n in range(3))
        assert client.flush()

        assert sorted(refusals(client)) == [
            (0, "INVALID", "anonymousId: must be text"),
            (2, "INVALID", "name: is too long"),
        ]


def test_refused_items_can_be_sent_again(server: FakeHeadrace) -> None:
    server.reply_once(403, SCOPE_MISMATCH)
    with connected(server) as client:
        client.track("a", {"n": 1})
        assert client.flush()
        assert refusals(client) == [(1, "SCOPE_MISMATCH", "Website scope mismatch")]

        assert client.requeue_refused() == 1
        assert client.flush()

        assert client.refused() == []
    assert server.event_names() == ["a"]


def test_refused_items_can_be_deleted(server: FakeHeadrace) -> None:
    server.reply_once(403, SCOPE_MISMATCH)
    with connected(server) as client:
        client.track("a")
        client.flush()

        assert client.delete_refused() == 1
        assert client.stats()[:5] == (0, 0, 0, 1, 0)


def test_refusal_concerns_the_items_of_one_website(server: FakeHeadrace) -> None:
    server.reply_once(403, SCOPE_MISMATCH)
    with connected(server) as client:
        client.track_many(
            {"name": "a", "website_id": f"web_{n % 2}", "properties": {"n": n}} for n in range(4)
        )
        assert client.flush()

        assert sorted(number for number, _, _ in refusals(client)) == [0, 2]
    assert numbers(server) == [1, 3]


def test_invalid_body_without_the_index_of_an_item_is_split_until_the_item_is_found(
    server: FakeHeadrace,
) -> None:
    with connected(server) as client:
        server.reply_once(400, INVALID, times=3)  # four items, two, and one
        client.track_many({"name": "a", "properties": {"n": n}} for n in range(4))
        assert client.flush()

        assert refusals(client) == [(0, "INVALID", "Invalid request body")]
    assert [count for _, count in server.requests[:3]] == [4, 2, 1]
    assert numbers(server) == [1, 2, 3]


def test_request_that_is_too_large_is_split(server: FakeHeadrace) -> None:
    with connected(server) as client:
        server.reply_once(413, times=2)
        client.track_many({"name": "a", "properties": {"n": n}} for n in range(8))
        assert client.flush()

        assert client.refused() == []
    assert [count for _, count in server.requests[:3]] == [8, 4, 2]
    assert numbers(server) == list(range(8))


def test_item_that_is_too_large_alone_is_refused(server: FakeHeadrace) -> None:
    server.reply_once(413, {"status": "error", "message": "Payload too large"})
    with connected(server) as client:
        client.track("a", {"n": 1})
        assert client.flush()

        assert refusals(client) == [(1, "PAYLOAD_TOO_LARGE", "Payload too large")]


def is_in_flight_after_a_failure(client: Headrace, outbox: Path) -> bool:
    """Wait until a request has failed, and return whether its items are still noted."""
    with client:
        while not client.stats().failures:
            time.sleep(0.01)
        client.close(0)
    with sqlite3.connect(outbox) as connection:
        row = connection.execute("SELECT 1 FROM in_flight").fetchone()
    connection.close()
    return row is not None


def test_item_whose_outcome_was_unknown_for_six_days_is_not_repeated(
    server: FakeHeadrace, outbox: Path
) -> None:
    with FakeHeadrace() as failing:
        failing.reply_once(500, times=100)
        client = connected(failing, outbox)
        client.track("a", {"n": 1})
        assert is_in_flight_after_a_failure(client, outbox)
    with sqlite3.connect(outbox) as connection:
        connection.execute("UPDATE in_flight SET since_ms = since_ms - 7 * 86400000")
    connection.close()

    with connected(server, outbox) as client:
        client.track("b")
        assert client.flush()

        reason = "no response for six days: a repeat could be stored twice"
        assert refusals(client) == [(1, "OUTCOME_UNKNOWN", reason)]
    assert server.event_names() == ["b"]
    assert server.requests == [("/track", 1)]


def test_outcome_that_was_unknown_stays_unknown_while_the_service_is_unreachable(
    server: FakeHeadrace, outbox: Path
) -> None:
    server.reply_once(500, times=100)
    client = connected(server, outbox)
    client.track("a")
    assert is_in_flight_after_a_failure(client, outbox)
    assert is_in_flight_after_a_failure(unreachable(outbox), outbox)


def test_items_are_a_repeat_until_their_outcome_is_known(outbox: Path) -> None:
    database = Database(outbox, synchronous="normal", max_bytes=10**6, busy_timeout_s=1)
    box = Outbox(database)
    box.append([ItemMaker().event("a", None, {})])
    taken = [box.take(max_items=10, max_bytes=1000) for _ in range(2)]
    box.put_back()
    taken.append(box.take(max_items=10, max_bytes=1000))
    database.close()

    assert [one and one.is_repeat for one in taken] == [False, True, False]
    assert len({one.ids for one in taken if one}) == 1


def test_outbox_at_its_limit_raises_and_what_is_in_it_stays(
    server: FakeHeadrace, outbox: Path
) -> None:
    accepted: list[str] = []
    with unreachable(outbox, max_outbox_bytes=200_000) as client:

        def fill() -> None:
            accepted.extend(client.track("a", {"n": n, "text": "x" * 1000}) for n in range(1000))

        with pytest.raises(OutboxFull, match="is full"):
            fill()
        client.close(0)

    with connected(server, outbox, max_outbox_bytes=200_000) as client:
        assert client.flush()
        client.track("a", {"n": len(accepted)})
        assert client.flush()
    assert 50 < len(accepted) < 200
    assert numbers(server) == list(range(len(accepted) + 1))


def test_outbox_at_its_limit_counts_what_it_drops(
    outbox: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with unreachable(outbox, max_outbox_bytes=100_000, when_full="drop") as client:
        ids = [client.track("a", {"text": "x" * 10_000}) for _ in range(20)]
        stats = client.stats()
        client.close(0)

    kept = [event_id for event_id in ids if event_id]
    assert (stats.pending, stats.dropped) == (len(kept), 20 - len(kept))
    assert 0 < len(kept) < 10
    dropped = [one.getMessage() for one in caplog.records if "dropped" in one.getMessage()]
    assert dropped[0].startswith("1 items were dropped: cannot use ")


def test_disk_that_is_nearly_full_takes_no_items_so_that_those_before_can_be_sent(
    outbox: Path,
) -> None:
    disks = [(10**9, 0, 10**9), (10**9, 0, 10**6)]  # total, used and free bytes
    database = Database(
        outbox,
        synchronous="normal",
        max_bytes=10**9,
        busy_timeout_s=1,
        disk_usage=lambda _: disks[0],
    )
    box = Outbox(database)
    item = ItemMaker().event("a", {"text": "x" * 100_000}, {})
    box.append([item])
    del disks[0]

    with pytest.raises(OutboxFull, match="the disk is nearly full"):
        box.append([item])
    in_flight = box.take(max_items=10, max_bytes=10**6)
    log_bytes = outbox.with_name("outbox.sqlite-wal").stat().st_size
    database.close()

    assert in_flight is not None
    assert (len(in_flight.ids), log_bytes < 100_000) == (1, True)


def test_next_client_sends_what_the_last_one_left(server: FakeHeadrace, outbox: Path) -> None:
    with unreachable(outbox) as client:
        client.track("left behind")
        assert not client.close(0)

    with connected(server, outbox) as client:
        assert client.flush()
    assert server.event_names() == ["left behind"]


def test_one_of_two_clients_sends_and_the_other_one_takes_over(
    server: FakeHeadrace, outbox: Path
) -> None:
    with connected(server, outbox) as first:
        first.track("a")
        assert first.flush()
        with unreachable(outbox) as second:  # could not send
            second.track("b")
            assert second.flush()
    with connected(server, outbox) as third, unreachable(outbox) as fourth:
        third.track("c")
        assert third.flush()
        third.close()
        fourth.track("d")
        fourth.close(0)
    with connected(server, outbox) as client:
        assert client.flush()
    assert server.event_names() == ["a", "b", "c", "d"]


def count_in_another_process(outbox: Path) -> int:
    """Count the items of an outbox in a process that opens and closes it."""
    code = """if True:
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1])
        print(connection.execute("SELECT count(*) FROM items").fetchone()[0])
        connection.close()
    """
    return int(subprocess.check_output((sys.executable, "-c", code, outbox), timeout=60))


def test_two_clients_of_a_process_keep_their_outbox_while_another_process_closes_it(
    outbox: Path,
) -> None:
    """Who closes an outbox that nobody else has locked removes its log, with what comes later."""
    with unreachable(outbox) as first, unreachable(outbox) as second:
        first.track("a")
        counts = [count_in_another_process(outbox)]
        first.track("a")
        second.track("a")
        counts.append(count_in_another_process(outbox))
        first.close(0)
        second.close(0)

    assert counts == [1, 3]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_outbox_that_cannot_be_written_is_an_error(outbox: Path) -> None:
    filled(outbox).chmod(0o400)
    with pytest.raises(OutboxUnavailable, match="Permission denied"):
        unreachable(outbox)


def test_failure_is_logged_once_and_ends_with_a_success(
    server: FakeHeadrace, caplog: pytest.LogCaptureFixture
) -> None:
    server.reply_once(500, times=2)
    with connected(server) as client:
        client.track("a")
        assert client.flush()
        assert client.stats()[6:] == (0, "")

    logged = [one.getMessage() for one in caplog.records if one.name == "headrace_client"]
    reason = "500 Internal Server Error"
    assert logged == [f"items are not sent, they stay in the outbox: {reason}"]


def test_outbox_is_readable_by_its_user_alone(outbox: Path) -> None:
    with unreachable(outbox) as client:
        client.track("a")
        modes = {stat.S_IMODE(one.stat().st_mode) for one in outbox.parent.glob("outbox*")}
        client.close(0)
    assert modes == {0o600}


def test_outbox_of_a_newer_client_is_not_touched(outbox: Path) -> None:
    with sqlite3.connect(outbox) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(OutboxUnavailable, match="another version"):
        unreachable(outbox)


def test_database_of_another_program_is_not_touched(outbox: Path) -> None:
    with sqlite3.connect(outbox) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    before = outbox.read_bytes()

    with pytest.raises(OutboxUnavailable, match=r"it is a database of another program$"):
        unreachable(outbox)

    assert outbox.read_bytes() == before


def test_items_of_an_outbox_that_was_deleted_are_in_a_new_file(
    server: FakeHeadrace, outbox: Path
) -> None:
    with unreachable(outbox) as client:
        client.track_many({"name": "a", "properties": {"n": n}} for n in range(2))
        for file in outbox.parent.glob("outbox.sqlite*"):
            file.unlink()
        client.track("a", {"n": 2})
        client.close(0)

    with connected(server, outbox) as client:
        assert client.flush()
    assert numbers(server) == [0, 1, 2]


def delete(folder: Path) -> None:
    """Delete a folder in which a client may create files at the same time."""
    shutil.rmtree(folder.rename(folder.with_name("deleted")))


def test_items_of_an_outbox_that_was_deleted_are_in_a_new_file_when_the_client_closes(
    server: FakeHeadrace, outbox: Path
) -> None:
    with unreachable(outbox) as client:
        client.track("a", {"n": 1})
        for file in outbox.parent.glob("outbox.sqlite*"):
            file.unlink()
        client.close(0)

    with connected(server, outbox) as client:
        assert client.flush()
    assert numbers(server) == [1]


def test_items_of_an_outbox_that_was_deleted_are_in_a_new_file_when_they_are_sent(
    outbox: Path,
) -> None:
    box, other = (
        Outbox(Database(outbox, synchronous="normal", max_bytes=10**6, busy_timeout_s=1))
        for _ in range(2)
    )
    box.append([ItemMaker().event("a", None, {})])
    for file in outbox.parent.glob("outbox.sqlite*"):
        file.unlink()
    box.take(max_items=10, max_bytes=1000)
    pending = other.counts().pending
    box.close()
    other.close()

    assert pending == 1


def test_client_that_closes_says_that_items_are_lost_with_the_directory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    client = unreachable(folder / "outbox.sqlite")
    client.track("a")
    delete(folder)

    assert not client.close(0)
    reason = f"cannot use {folder / 'outbox.sqlite'}: No such file or directory"
    assert f"items that were not sent may be lost: {reason}" in caplog.text


def test_outbox_whose_directory_was_deleted_accepts_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with unreachable(folder / "outbox.sqlite") as client:
        client.track("a")
        delete(folder)
        with pytest.raises(OutboxUnavailable, match="No such file or directory"):
            client.track("b")
        folder.mkdir()
        client.track("c")

        assert client.stats().pending == 2
        client.close(0)


def test_lock_that_was_deleted_is_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    path.parent.mkdir()
    first, second = ProcessLock(path), ProcessLock(path)
    assert first.acquire()
    path.unlink()
    assert second.acquire()
    assert not first.acquire()
    second.release()
    assert first.acquire()

    shutil.rmtree(path.parent)
    assert first.acquire()
    first.release()


def filled(outbox: Path, *changes: str) -> Path:
    """Write two items to an outbox, and change its file afterwards."""
    with unreachable(outbox) as client:
        client.track_many({"name": "a", "properties": {"n": n}} for n in range(2))
        client.close(0)
    with sqlite3.connect(outbox) as connection:
        for change in changes:
            connection.execute(change)
    connection.close()
    return outbox


def test_damaged_item_is_refused_with_what_is_legible_of_it(
    server: FakeHeadrace, outbox: Path
) -> None:
    damage = "UPDATE items SET body = x'7bff41' WHERE id = (SELECT min(id) FROM items)"
    with connected(server, filled(outbox, damage)) as client:
        assert client.flush()

        assert [one.item for one in client.refused()] == [{"damaged": "{\ufffdA"}]
    assert numbers(server) == [1]


def test_items_in_flight_that_are_gone_stop_no_others(server: FakeHeadrace, outbox: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    damage = f"INSERT OR REPLACE INTO in_flight VALUES (1, '/track', 'gone', 1, 2, {now_ms})"
    with connected(server, filled(outbox, damage)) as client:
        assert client.flush()
    assert numbers(server) == [0, 1]


def test_outbox_in_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutboxUnavailable, match="No such file or directory"):
        unreachable(tmp_path / "missing" / "outbox.sqlite")


def test_close_may_wait_without_a_limit(server: FakeHeadrace) -> None:
    client = connected(server)
    client.track("signup")

    assert client.close(float("inf"))
    assert server.event_names() == ["signup"]


class ClosedMeanwhile(Database):
    """A database that another thread closes just before it is used."""

    @contextmanager
    def connect(self) -> Generator[sqlite3.Connection]:
        self.close()
        with super().connect() as connection:
            yield connection


def test_outbox_that_another_thread_closes_meanwhile_is_closed(outbox: Path) -> None:
    database = ClosedMeanwhile(outbox, synchronous="normal", max_bytes=10**6, busy_timeout_s=1)
    Outbox(database).close()
    assert database.is_closed


def test_closed_client_accepts_nothing(server: FakeHeadrace) -> None:
    client = connected(server)
    client.close()
    with pytest.raises(ClientClosed):
        client.track("a")


def test_callback_may_close_the_client(
    server: FakeHeadrace, outbox: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closings: list[bool] = []

    def close(_: RefusedItem) -> None:
        closings.append(client.close())

    server.reply_once(403, SCOPE_MISMATCH)
    client: Headrace = connected(server, outbox, on_refused=close)
    client.track_many([{"name": "a", "website_id": "web_0"}, {"name": "b"}])
    while not closings:
        time.sleep(0.01)

    with connected(server, outbox) as following:
        assert following.flush()
    assert closings == [False]
    assert "on_refused failed" not in caplog.text
    assert server.event_names() == ["b"]


@pytest.mark.parametrize("error", [ValueError("in the callback"), SystemExit(1)], ids=repr)
def test_callback_that_fails_ends_nothing(
    server: FakeHeadrace, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def fail(_: RefusedItem) -> None:
        raise error

    caplog.set_level(logging.ERROR)
    server.reply_once(403, SCOPE_MISMATCH)
    with connected(server, on_refused=fail) as client:
        client.track("a")
        assert client.flush()
        client.track("b")
        assert client.flush()
    assert server.event_names() == ["b"]
    assert "on_refused failed" in caplog.text
