"""Which machine has an item: two machines, one server, and what becomes of it in every failure."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from headrace.adapters.valkey.client import Argument, Script, SharedServer
from headrace.adapters.valkey.dedup_claims import SharedClaims
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, SharedUnavailable
from headrace.ports.dedup_claims import Claim
from tests.servers import Shared

DAY = 86_400_000
NOW = SystemClock().now_ms()
ONE, TWO, THREE = (bytes([number]) * 16 for number in (1, 2, 3))

MakeClaims = Callable[..., SharedClaims]


def wanted(*digests: bytes, at_ms: int = NOW) -> dict[bytes, Claim]:
    return dict.fromkeys(digests, Claim(received_ms=at_ms, expires_ms=at_ms + 7 * DAY))


@pytest.fixture
def server(shared_server: Shared) -> Shared:
    """An empty server that runs, also after a test that killed it."""
    shared_server.server.kill()
    shared_server.server.start()
    shared_server.empty()
    return shared_server


@pytest.fixture
def machine(server: Shared, tmp_path: Path) -> Iterator[MakeClaims]:
    """Makes the claims of a machine; of the same name it is the same machine started again."""
    opened = ExitStack()

    def make(name: str, *, waits: bool = False, host: str = "", **seen: int) -> SharedClaims:
        claims = SharedClaims(
            SharedServer(server.url),
            tmp_path / f"{name}.claims",
            identity=name,
            machine=host or name,
            seen=lambda: ((bytes([int(byte[1:])]) * 16, until) for byte, until in seen.items()),
            waits=waits,
        )
        opened.callback(claims.close)
        return claims

    with opened:
        yield make


def test_first_has_it_and_others_are_told(machine: MakeClaims) -> None:
    first, second = machine("a"), machine("b")
    assert first.claim(1, wanted(ONE, TWO)) == frozenset()
    assert second.claim(1, wanted(TWO, THREE)) == {TWO}
    assert first.claim(2, wanted(THREE)) == {THREE}


def test_batch_that_is_done_again_has_what_it_had(machine: MakeClaims) -> None:
    machine("b").claim(4, wanted(TWO))
    for _ in range(2):
        assert machine("a").claim(1, wanted(ONE, TWO)) == {TWO}


def test_batch_is_the_same_again_when_the_server_has_lost_everything(
    machine: MakeClaims, server: Shared
) -> None:
    first = machine("a")
    machine("b").claim(1, wanted(TWO))
    before = first.claim(1, wanted(ONE, TWO))
    server.empty()
    machine("b").claim(2, wanted(ONE))
    assert (before, machine("a").claim(1, wanted(ONE, TWO))) == ({TWO}, {TWO})


def test_batch_that_died_before_it_could_note_anything_has_its_claims(
    machine: MakeClaims, tmp_path: Path
) -> None:
    machine("a").claim(1, wanted(ONE))
    (tmp_path / "a.claims").unlink()
    assert machine("a").claim(1, wanted(ONE)) == frozenset()
    assert machine("b").claim(1, wanted(ONE)) == {ONE}


def test_second_call_for_a_batch_asks_only_for_what_is_new(machine: MakeClaims) -> None:
    machine("b").claim(1, wanted(THREE))
    claims = machine("a")
    assert claims.claim(1, wanted(ONE)) == frozenset()
    assert claims.claim(1, wanted(ONE, THREE)) == {THREE}
    assert machine("a").claim(1, wanted(ONE, THREE)) == {THREE}


def test_claim_that_had_expired_when_the_item_came_does_not_count(machine: MakeClaims) -> None:
    machine("a").claim(1, wanted(ONE, TWO, at_ms=NOW - 7 * DAY + 5))
    second = machine("b")
    assert second.claim(1, wanted(ONE, at_ms=NOW + 4)) == {ONE}
    assert second.claim(2, wanted(TWO, at_ms=NOW + 5)) == frozenset()
    assert machine("a").claim(2, wanted(TWO, at_ms=NOW + 5)) == {TWO}


def test_many_digests_are_claimed_in_order(machine: MakeClaims) -> None:
    digests = [number.to_bytes(16) for number in range(2345)]
    machine("a").claim(1, wanted(*digests[::7]))
    assert machine("b").claim(1, wanted(*digests)) == set(digests[::7])


def test_server_that_is_new_is_told_what_a_ledger_remembers(machine: MakeClaims) -> None:
    machine("a", _1=NOW + DAY, _2=NOW - 1).claim(9, wanted(THREE))
    assert machine("b").claim(1, wanted(ONE, TWO, THREE)) == {ONE, THREE}


def test_server_that_lost_its_memory_is_told_again(machine: MakeClaims, server: Shared) -> None:
    machine("a", _1=NOW + DAY).claim(1, wanted(TWO))
    server.empty()
    machine("a", _1=NOW + DAY).claim(2, wanted(THREE))
    assert machine("b").claim(1, wanted(ONE)) == {ONE}


def test_claims_outlive_a_crash_of_the_server(machine: MakeClaims, server: Shared) -> None:
    machine("a").claim(1, wanted(ONE))
    server.server.kill()
    server.server.start()
    assert machine("b").claim(1, wanted(ONE)) == {ONE}


def test_nothing_is_told_while_the_server_is_away_and_everything_once_it_is_back(
    machine: MakeClaims, server: Shared
) -> None:
    first, second = machine("a"), machine("b")
    first.claim(1, wanted(ONE))
    server.server.kill()
    with pytest.raises(SharedUnavailable, match="the shared server cannot be used"):
        second.claim(1, wanted(ONE))
    server.server.start()
    assert second.claim(1, wanted(ONE)) == {ONE}


def test_batch_that_was_agreed_on_needs_no_server(machine: MakeClaims, server: Shared) -> None:
    machine("a").claim(1, wanted(ONE))
    server.server.kill()
    assert machine("a").claim(1, wanted(ONE)) == frozenset()


def test_item_that_another_has_not_stored_yet_is_waited_for_where_that_is_wanted(
    machine: MakeClaims,
) -> None:
    first = machine("a")
    first.claim(1, wanted(ONE))
    careful = machine("b", waits=True)
    with pytest.raises(SharedUnavailable, match="another machine has not stored 1 items yet"):
        careful.claim(1, wanted(ONE, TWO))
    first.settle(1)
    assert careful.claim(1, wanted(ONE, TWO)) == {ONE}


def test_machine_with_a_copy_of_anothers_directory_stores_nothing_while_that_one_does(
    machine: MakeClaims, server: Shared
) -> None:
    machine("a").claim(1, wanted(ONE))
    copied = machine("a", host="another")
    with pytest.raises(SharedUnavailable, match="another machine uses a copy of this data dir"):
        copied.claim(2, wanted(TWO))
    assert machine("a").claim(2, wanted(TWO)) == frozenset()
    server.age(60_000)  # it has moved for good
    assert copied.claim(3, wanted(THREE)) == frozenset()


def test_server_that_is_set_up_to_forget_is_warned_of_once(
    machine: MakeClaims, server: Shared
) -> None:
    server.configure("maxmemory-policy", "allkeys-lru")
    try:
        with capture_logs() as lines:
            claims = machine("a")
            claims.claim(1, wanted(ONE))
            claims.claim(2, wanted(TWO))
    finally:
        server.configure("maxmemory-policy", "noeviction")
    warned = [line for line in lines if line["event"] == "shared_server_may_forget"]
    assert [(line["maxmemory_policy"], line["appendonly"]) for line in warned] == [
        ("allkeys-lru", 1)
    ]


class ListingServer(SharedServer):
    """Notes the names that scripts are run over."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.names: list[Argument] = []

    def run(self, script: Script, keys: Sequence[Argument], arguments: Sequence[Argument]) -> Any:
        self.names += keys[1:]
        return super().run(script, keys, arguments)


def test_digests_are_claimed_in_one_order_so_that_machines_never_wait_for_each_other(
    server: Shared, tmp_path: Path
) -> None:
    digests = [number.to_bytes(16) for number in range(1200)]
    asked: list[list[Argument]] = []
    for name, order in (("a", digests), ("b", digests[::-1])):
        listing = ListingServer(server.url)
        file = tmp_path / name
        claims = SharedClaims(
            listing, file, identity=name, machine="", seen=lambda: (), waits=False
        )
        claims.claim(1, wanted(*order))
        asked.append(listing.names[-1200:])
        claims.close()
    assert asked[0] == asked[1]


def test_item_that_another_is_storing_is_waited_for_a_moment(machine: MakeClaims) -> None:
    first = machine("a")
    first.claim(1, wanted(ONE))
    stored = threading.Timer(0.2, machine("a").settle, (1,))
    stored.start()
    assert machine("b", waits=True).claim(1, wanted(ONE, TWO)) == {ONE}
    stored.join()


def test_batch_is_settled_by_the_next_one_too(machine: MakeClaims) -> None:
    first = machine("a")
    first.claim(1, wanted(ONE))
    first.claim(2, wanted(TWO))
    first.settle(1)
    careful = machine("b", waits=True)
    assert careful.claim(1, wanted(ONE)) == {ONE}
    with pytest.raises(SharedUnavailable):
        careful.claim(2, wanted(TWO))


def test_settling_a_batch_that_claimed_nothing_asks_nobody(
    machine: MakeClaims, server: Shared
) -> None:
    server.server.kill()
    machine("a").settle(3)


WRONG = (
    "http://localhost:6379",
    "localhost:6379",
    "valkey://",
    "unix:///tmp/socket",
    "valkey://me:hu#sh@localhost",
    "valkey://localhost:port",
    "valkey://[::1",
)


@pytest.mark.parametrize("url", WRONG)
def test_url_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(
        OperatorError, match="the shared server's URL must be valkey://HOST:PORT"
    ) as caught:
        SharedServer(url)
    assert "hu" not in str(caught.value)
