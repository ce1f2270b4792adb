"""Two machines and one store: of an item that was sent to both, one stores it."""

from collections.abc import Collection, Mapping, Sequence

from headrace.ingest.load.batch_reader import GatheredRecord
from headrace.ingest.load.deduplicate import sift_with_others
from headrace.model.log_records import UNKNOWN_VISITOR, Event, EventRecord, LogRecord, Stream
from headrace.ports.dedup_claims import Claim
from headrace.ports.event_log import LOG_START, LoggedRecord

NOON = 1_700_000_000_000


class ListedClaims:
    """`Claims` over a table that several machines share; notes what was asked."""

    def __init__(self, machine: str, held: dict[bytes, str]) -> None:
        self.machine = machine
        self.held = held
        self.asked: list[int] = []

    def claim(self, batch: int, wanted: Mapping[bytes, Claim]) -> Collection[bytes]:
        self.asked.append(len(wanted))
        mine = f"{self.machine}-{batch}"
        return {digest for digest in wanted if self.held.setdefault(digest, mine) != mine}

    def settle(self, batch: int) -> None: ...

    def close(self) -> None: ...


def record(*ids: str, key: bytes = b"") -> GatheredRecord:
    items = [Event("web_a", NOON, f"name {name}", event_id=name) for name in ids]
    content: LogRecord = EventRecord(NOON, UNKNOWN_VISITOR, items, key)
    return GatheredRecord("worker-0", LoggedRecord(b"", LOG_START, LOG_START), NOON, content)


def nothing_seen(_asked: Sequence[bytes]) -> Mapping[bytes, int]:
    return {}


def kept(claims: ListedClaims, *records: GatheredRecord, batch: int = 1) -> list[list[int]]:
    sifting = sift_with_others(records, nothing_seen, claims=claims, batch=batch)
    return [list(indexes) for indexes in sifting.kept]


def test_item_that_another_machine_has_is_left_out_and_counted() -> None:
    held: dict[bytes, str] = {}
    first, second = ListedClaims("a", held), ListedClaims("b", held)
    assert kept(first, record("1", "2")) == [[0, 1]]
    sifting = sift_with_others(
        [record("2", "3"), record("3")], nothing_seen, claims=second, batch=1
    )
    assert [list(indexes) for indexes in sifting.kept] == [[1], []]
    assert sifting.repeated == {Stream.EVENTS: 2}
    assert len(sifting.seen) == 1


def test_batch_that_is_done_again_is_the_same() -> None:
    held: dict[bytes, str] = {}
    claims = ListedClaims("a", held)
    kept(ListedClaims("b", held), record("2"))
    assert kept(claims, record("1", "2")) == kept(claims, record("1", "2")) == [[0]]


def test_items_of_a_request_that_another_machine_has_are_not_claimed() -> None:
    """Were they, neither machine would store them."""
    held: dict[bytes, str] = {}
    first, second = ListedClaims("a", held), ListedClaims("b", held)
    assert kept(first, record("1", "2", key=b"K" * 32)) == [[0, 1]]
    del held[next(digest for digest in held if digest != b"K" * 32)]  # as if it were on its way
    assert kept(second, record("1", "2", key=b"K" * 32)) == [[]]
    assert set(held.values()) == {"a-1"}


def test_batch_without_ids_asks_nobody() -> None:
    claims = ListedClaims("a", {})
    assert kept(claims, record("", "")) == [[0, 1]]
    assert claims.asked == []
