"""What erasures remove from the quarantine and from the replies for an Idempotency-Key."""

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from headrace.adapters.quarantine.erasable_entries import ErasableQuarantine
from headrace.adapters.quarantine.file_quarantine import FileQuarantine
from headrace.adapters.sqlite.erasable_replies import SqliteErasableReplies
from headrace.adapters.sqlite.idempotency import SqliteIdempotencyStore
from headrace.adapters.valkey.client import ValkeyClient
from headrace.adapters.valkey.erasable_replies import ValkeyErasableReplies
from headrace.adapters.valkey.idempotency import ValkeyIdempotencyStore
from headrace.base.clock import SystemClock
from headrace.base.errors import StoreUnavailable
from headrace.erasure.matching import entry_matches
from headrace.ingest.receive.preparation import AcceptResult
from headrace.model.erasure import Selector, SelectorKind
from headrace.ports.event_log import LogOffset
from headrace.ports.idempotency import Acquired, Replay
from headrace.ports.quarantine import QuarantineEntry
from testing.servers.shared_state import ValkeyServer

ANN = Selector(SelectorKind.ANONYMOUS_ID, "ann-1")
EMAIL = Selector(SelectorKind.PROPERTY, "a@b", "email")


def put(path: Path, offset: int, **fields: object) -> str:
    entry = QuarantineEntry("worker-0", LogOffset(1, offset), "too long", **fields)  # type: ignore[arg-type] # fields by name
    FileQuarantine(path).put(entry)
    return max(file.name for file in path.glob("*.json"))


def item(anonymous_id: str) -> dict[str, object]:
    return {
        "website_id": "web_1",
        "anonymous_id": anonymous_id,
        "properties": b'{"email":"a@b"}' if anonymous_id == "bob" else b"",
    }


def test_entries_match_by_their_item_or_by_their_bytes(tmp_path: Path) -> None:
    quarantine = ErasableQuarantine(tmp_path)
    ann = put(tmp_path, 1, stream="events", index=0, item=item("ann-1"))
    bob = put(tmp_path, 2, stream="events", index=0, item=item("bob"))
    raw = put(tmp_path, 3, payload=b"\xc1web_1\x00ann-1\xff")
    edited = tmp_path / f"worker-0-{1:020}-{4:010}.json"
    edited.write_text('{"item": {"website_id": "web_1", "anonymous_id": "ann-1"')
    find = quarantine.find
    assert find(lambda entry: entry_matches(entry, "web_1", [ANN])) == [ann, raw, edited.name]
    assert find(lambda entry: entry_matches(entry, "web_1", [EMAIL])) == [bob]
    assert find(lambda entry: entry_matches(entry, "web_2", [ANN])) == []


def test_removed_entries_are_gone_and_may_be_removed_again(tmp_path: Path) -> None:
    quarantine = ErasableQuarantine(tmp_path)
    entry = put(tmp_path, 1, payload=b"x")
    for _ in range(2):
        quarantine.remove([entry])
    assert list(tmp_path.iterdir()) == []


REPLY = msgspec.json.encode(AcceptResult(3, ("ev-secret", None, "ev-other")))
CHANGED = msgspec.json.encode(AcceptResult(3, (None, None, "ev-other")))
COUNT = msgspec.json.encode(AcceptResult(1))


def all_bytes(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.glob("repeats.sqlite*"))


async def test_an_event_id_leaves_the_replies_and_every_byte_of_their_files(tmp_path: Path) -> None:
    path = tmp_path / "repeats.sqlite"
    store = SqliteIdempotencyStore.open(path, owner="w", clock=SystemClock())
    for digest, reply in ((b"1", REPLY), (b"2", COUNT)):
        assert await store.acquire(digest) == Acquired()
        await store.save_response(digest, reply)
    replies = SqliteErasableReplies(path)
    assert replies.event_ids() == {"ev-secret", "ev-other"}
    replies.forget_event_id("ev-secret")
    assert replies.event_ids() == {"ev-other"}
    assert b"ev-secret" not in all_bytes(tmp_path)
    assert await store.acquire(b"1") == Replay(CHANGED)
    assert await store.acquire(b"2") == Replay(COUNT)
    await store.close()


async def test_replies_without_the_event_id_are_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "repeats.sqlite"
    store = SqliteIdempotencyStore.open(path, owner="w", clock=SystemClock())
    await store.acquire(b"1")
    await store.save_response(b"1", REPLY)
    with closing(sqlite3.connect(path)) as connection, connection:
        others = ((f"digest {number}".encode(), COUNT * 100) for number in range(10_000))
        connection.executemany("INSERT INTO claims VALUES (?, 'w', 0, ?)", others)
    tracemalloc.start()
    try:
        SqliteErasableReplies(path).forget_event_id("ev-secret")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert await store.acquire(b"1") == Replay(CHANGED)
    assert peak_bytes < 1_000_000  # the replies have 10,000 times 3,000
    await store.close()


def test_replies_of_a_service_that_never_ran_need_nothing(tmp_path: Path) -> None:
    SqliteErasableReplies(tmp_path / "repeats.sqlite").forget_event_id("e")
    assert list(tmp_path.iterdir()) == []


def test_replies_that_cannot_be_changed_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "repeats.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(StoreUnavailable, match="cannot change the idempotency keys"):
        SqliteErasableReplies(tmp_path / "repeats.sqlite").forget_event_id("e")


async def test_an_event_id_leaves_the_replies_that_machines_share(
    valkey_server: ValkeyServer,
) -> None:
    valkey_server.empty()
    client, blocking = valkey_server.connections(), ValkeyClient(valkey_server.url)
    store = ValkeyIdempotencyStore(client, owner="w")
    replies = ValkeyErasableReplies(blocking)
    assert replies.event_ids() == frozenset()
    assert await store.acquire(b"0") == Acquired()
    for digest, reply in ((b"1", REPLY), (b"2", COUNT)):
        assert await store.acquire(digest) == Acquired()
        await store.save_response(digest, reply)
    assert replies.event_ids() == {"ev-secret", "ev-other"}
    replies.forget_event_id("ev-secret")
    assert replies.event_ids() == {"ev-other"}
    assert await store.acquire(b"1") == Replay(CHANGED)
    assert await store.acquire(b"2") == Replay(COUNT)
    blocking.close()
    await client.close()
