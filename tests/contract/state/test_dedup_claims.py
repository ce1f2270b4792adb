"""Deduplication across machines: two machines, one Valkey server, and every failure of each."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from headrace.adapters.valkey.client import Argument, Script, ValkeyClient
from headrace.adapters.valkey.dedup_claims import ValkeyDedupClaims
from headrace.base.clock import SystemClock
from headrace.base.errors import OperatorError, SharedStateUnavailable
from headrace.ports.dedup_claims import Claim
from testing.servers.shared_state import ValkeyServer

DAY = 86_400_000
NOW = SystemClock().now_ms()
ONE, TWO, THREE = (bytes([number]) * 16 for number in (1, 2, 3))

MakeClaims = Callable[..., ValkeyDedupClaims]


def wanted(*digests: bytes, at_ms: int = NOW) -> dict[bytes, Claim]:
    return dict.fromkeys(digests, Claim(received_ms=at_ms, expires_ms=at_ms + 7 * DAY))


@pytest.fixture
def server(valkey_server: ValkeyServer) -> Iterator[ValkeyServer]:
    """An empty, running server, whose configuration a test may change, and which it may kill."""
    valkey_server.server.kill()
    valkey_server.server.start()
    valkey_server.empty()
    yield valkey_server
    valkey_server.server.ensure_running()


@pytest.fixture
def machine(server: ValkeyServer, tmp_path: Path) -> Iterator[MakeClaims]:
    """Opens the claims of a machine; a reused name means the same machine after a restart."""
    opened = ExitStack()

    def make(
        name: str, *, waits_for_pending: bool = False, host: str = "", **seen: int
    ) -> ValkeyDedupClaims:
        claims = ValkeyDedupClaims(
            ValkeyClient(server.url),
            tmp_path / f"{name}.claims",
            identity=name,
            machine=host or name,
            known_digests=lambda: (
                (bytes([int(byte[1:])]) * 16, until) for byte, until in seen.items()
            ),
            waits_for_pending=waits_for_pending,
        )
        opened.callback(claims.close)
        return claims

    with opened:
        yield make


def test_first_claim_wins_and_others_see_a_duplicate(machine: MakeClaims) -> None:
    first, second = machine("a"), machine("b")
    assert first.claim(1, wanted(ONE, TWO)) == frozenset()
    assert second.claim(1, wanted(TWO, THREE)) == {TWO}
    assert first.claim(2, wanted(THREE)) == {THREE}


def test_repeated_batch_keeps_its_claims(machine: MakeClaims) -> None:
    machine("b").claim(4, wanted(TWO))
    for _ in range(2):
        assert machine("a").claim(1, wanted(ONE, TWO)) == {TWO}


def test_repeated_batch_keeps_its_claims_after_valkey_lost_its_data(
    machine: MakeClaims, server: ValkeyServer
) -> None:
    first = machine("a")
    machine("b").claim(1, wanted(TWO))
    before = first.claim(1, wanted(ONE, TWO))
    server.empty()
    machine("b").claim(2, wanted(ONE))
    assert (before, machine("a").claim(1, wanted(ONE, TWO))) == ({TWO}, {TWO})


def test_batch_that_crashed_before_recording_keeps_its_claims(
    machine: MakeClaims, tmp_path: Path
) -> None:
    machine("a").claim(1, wanted(ONE))
    (tmp_path / "a.claims").unlink()
    assert machine("a").claim(1, wanted(ONE)) == frozenset()
    assert machine("b").claim(1, wanted(ONE)) == {ONE}


def test_second_claim_of_a_batch_sends_only_new_digests(machine: MakeClaims) -> None:
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


def test_empty_valkey_is_filled_from_the_ledger(machine: MakeClaims) -> None:
    machine("a", _1=NOW + DAY, _2=NOW - 1).claim(9, wanted(THREE))
    assert machine("b").claim(1, wanted(ONE, TWO, THREE)) == {ONE, THREE}


def test_digests_that_a_migration_added_are_sent_to_a_valkey_that_knows_the_ledger(
    machine: MakeClaims, server: ValkeyServer
) -> None:
    server.put("headrace:ledger:a", "1")  # as the version before the migration left it
    machine("a", _1=NOW + DAY).claim(9, wanted(THREE))
    assert machine("b").claim(1, wanted(ONE)) == {ONE}


def test_valkey_that_lost_its_data_is_refilled(machine: MakeClaims, server: ValkeyServer) -> None:
    machine("a", _1=NOW + DAY).claim(1, wanted(TWO))
    server.empty()
    machine("a", _1=NOW + DAY).claim(2, wanted(THREE))
    assert machine("b").claim(1, wanted(ONE)) == {ONE}


def test_claims_survive_a_valkey_crash(machine: MakeClaims, server: ValkeyServer) -> None:
    machine("a").claim(1, wanted(ONE))
    server.server.kill()
    server.server.start()
    assert machine("b").claim(1, wanted(ONE)) == {ONE}


def test_claims_are_resynced_once_valkey_is_back(machine: MakeClaims, server: ValkeyServer) -> None:
    first, second = machine("a"), machine("b")
    first.claim(1, wanted(ONE))
    server.server.kill()
    with pytest.raises(SharedStateUnavailable, match="the shared server cannot be used"):
        second.claim(1, wanted(ONE))
    server.server.start()
    assert second.claim(1, wanted(ONE)) == {ONE}


def test_claimed_batch_needs_no_valkey(machine: MakeClaims, server: ValkeyServer) -> None:
    machine("a").claim(1, wanted(ONE))
    server.server.kill()
    assert machine("a").claim(1, wanted(ONE)) == frozenset()


def test_item_pending_on_another_machine_is_awaited_if_requested(
    machine: MakeClaims,
) -> None:
    first = machine("a")
    first.claim(1, wanted(ONE))
    waiting_claims = machine("b", waits_for_pending=True)
    with pytest.raises(SharedStateUnavailable, match="another machine has not yet stored 1 items"):
        waiting_claims.claim(1, wanted(ONE, TWO))
    first.mark_stored(1)
    assert waiting_claims.claim(1, wanted(ONE, TWO)) == {ONE}


def test_machine_with_a_copied_data_directory_stores_nothing_while_the_original_runs(
    machine: MakeClaims, server: ValkeyServer
) -> None:
    machine("a").claim(1, wanted(ONE))
    copied_claims = machine("a", host="another")
    with pytest.raises(
        SharedStateUnavailable, match="another machine uses a copy of this data dir"
    ):
        copied_claims.claim(2, wanted(TWO))
    assert machine("a").claim(2, wanted(TWO)) == frozenset()
    server.age(60_000)  # it has moved for good
    assert copied_claims.claim(3, wanted(THREE)) == frozenset()


def test_valkey_with_an_eviction_policy_is_warned_about_once(
    machine: MakeClaims, server: ValkeyServer
) -> None:
    server.configure("maxmemory-policy", "allkeys-lru")
    try:
        with capture_logs() as lines:
            claims = machine("a")
            claims.claim(1, wanted(ONE))
            claims.claim(2, wanted(TWO))
    finally:
        server.configure("maxmemory-policy", "noeviction")
    warnings = [line for line in lines if line["event"] == "shared_server_may_forget"]
    assert [(line["maxmemory_policy"], line["appendonly"]) for line in warnings] == [
        ("allkeys-lru", 1)
    ]


class RecordingClient(ValkeyClient):
    """Records the keys of scripts."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.keys: list[Argument] = []

    def run(self, script: Script, keys: Sequence[Argument], arguments: Sequence[Argument]) -> Any:
        self.keys += keys[1:]
        return super().run(script, keys, arguments)


def test_digests_are_claimed_in_sorted_order_to_avoid_deadlocks(
    server: ValkeyServer, tmp_path: Path
) -> None:
    digests = [number.to_bytes(16) for number in range(1200)]
    claimed_keys: list[list[Argument]] = []
    for name, order in (("a", digests), ("b", digests[::-1])):
        recording = RecordingClient(server.url)
        file = tmp_path / name
        claims = ValkeyDedupClaims(
            recording,
            file,
            identity=name,
            machine="",
            known_digests=lambda: (),
            waits_for_pending=False,
        )
        claims.claim(1, wanted(*order))
        claimed_keys.append(recording.keys[-1200:])
        claims.close()
    assert claimed_keys[0] == claimed_keys[1]


def test_item_pending_on_another_machine_is_awaited_briefly(machine: MakeClaims) -> None:
    first = machine("a")
    first.claim(1, wanted(ONE))
    stored = threading.Timer(0.2, machine("a").mark_stored, (1,))
    stored.start()
    assert machine("b", waits_for_pending=True).claim(1, wanted(ONE, TWO)) == {ONE}
    stored.join()


def test_batch_is_also_marked_stored_by_the_next_one(machine: MakeClaims) -> None:
    first = machine("a")
    first.claim(1, wanted(ONE))
    first.claim(2, wanted(TWO))
    first.mark_stored(1)
    waiting_claims = machine("b", waits_for_pending=True)
    assert waiting_claims.claim(1, wanted(ONE)) == {ONE}
    with pytest.raises(SharedStateUnavailable):
        waiting_claims.claim(2, wanted(TWO))


def test_marking_a_batch_without_claims_sends_no_command(
    machine: MakeClaims, server: ValkeyServer
) -> None:
    server.server.kill()
    machine("a").mark_stored(3)


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
def test_url_with_another_scheme_is_rejected(url: str) -> None:
    with pytest.raises(
        OperatorError, match="the shared server's URL must be valkey://HOST:PORT"
    ) as caught:
        ValkeyClient(url)
    assert "hu" not in str(caught.value)
