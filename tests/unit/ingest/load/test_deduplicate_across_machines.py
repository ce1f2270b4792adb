"""Two machines and one store: an item sent to both is stored by one of them."""

from collections.abc import Collection, Mapping, Sequence

from headrace.ingest.load.batch_reader import ReadRecord
from headrace.ingest.load.deduplicate import deduplicate_across_machines
from headrace.model.log_records import UNKNOWN_VISITOR, Event, EventKind, EventRecord, LogRecord
from headrace.ports.dedup_claims import Claim
from headrace.ports.event_log import LOG_START, LoggedRecord

NOON = 1_700_000_000_000


class ListedClaims:
    """`DedupClaims` over a table that machines share; records the number of requested claims."""

    def __init__(self, machine: str, owners: dict[bytes, str]) -> None:
        self.machine = machine
        self.owners = owners
        self.requested: list[int] = []

    def claim(self, batch: int, wanted: Mapping[bytes, Claim]) -> Collection[bytes]:
        self.requested.append(len(wanted))
        mine = f"{self.machine}-{batch}"
        return {digest for digest in wanted if self.owners.setdefault(digest, mine) != mine}

    def mark_stored(self, batch: int) -> None: ...

    def close(self) -> None: ...


def record(*ids: str, key: bytes = b"", has_api_key: bool | None = True) -> ReadRecord:
    items = [Event("web_a", NOON, f"name {name}", event_id=name) for name in ids]
    content: LogRecord = EventRecord(NOON, UNKNOWN_VISITOR, items, key, has_api_key)
    return ReadRecord("worker-0", LoggedRecord(b"", LOG_START, LOG_START), NOON, content)


def none_known(_requested: Sequence[bytes]) -> Mapping[bytes, int]:
    return {}


def kept(claims: ListedClaims, *records: ReadRecord, batch: int = 1) -> list[list[int]]:
    dedup = deduplicate_across_machines(records, none_known, claims=claims, batch=batch)
    return [list(indexes) for indexes in dedup.kept]


def test_item_claimed_by_another_machine_is_dropped_and_counted() -> None:
    owners: dict[bytes, str] = {}
    first, second = ListedClaims("a", owners), ListedClaims("b", owners)
    assert kept(first, record("1", "2")) == [[0, 1]]
    dedup = deduplicate_across_machines(
        [record("2", "3"), record("3")], none_known, claims=second, batch=1
    )
    assert [list(indexes) for indexes in dedup.kept] == [[1], []]
    assert dedup.dropped == {(EventKind.EVENTS, "repeated"): 2}
    assert len(dedup.new_digests) == 1


def test_ids_claimed_with_a_key_are_free_without_one() -> None:
    owners: dict[bytes, str] = {}
    assert kept(ListedClaims("a", owners), record("1")) == [[0]]
    assert kept(ListedClaims("b", owners), record("1", has_api_key=False)) == [[0]]
    assert kept(ListedClaims("c", owners), record("1", has_api_key=False), record("1")) == [[], []]


def test_record_of_an_older_version_is_compared_as_before_and_claims_both_namespaces() -> None:
    """Its batch may have begun before the upgrade: a redo must have the same contents."""
    owners: dict[bytes, str] = {}
    kept(ListedClaims("a", owners), record("1", has_api_key=False))
    assert kept(ListedClaims("b", owners), record("1", "2", has_api_key=None)) == [[0, 1]]
    third = ListedClaims("c", owners)
    assert kept(third, record("1", "2"), record("2", has_api_key=False)) == [[], []]


def test_repeated_batch_is_identical() -> None:
    owners: dict[bytes, str] = {}
    claims = ListedClaims("a", owners)
    kept(ListedClaims("b", owners), record("2"))
    assert kept(claims, record("1", "2")) == kept(claims, record("1", "2")) == [[0]]


def test_items_of_a_request_claimed_by_another_machine_are_not_claimed() -> None:
    """If they were claimed, neither machine would store them."""
    owners: dict[bytes, str] = {}
    first, second = ListedClaims("a", owners), ListedClaims("b", owners)
    assert kept(first, record("1", "2", key=b"K" * 32)) == [[0, 1]]
    del owners[next(digest for digest in owners if digest != b"K" * 32)]  # as if it were in flight
    assert kept(second, record("1", "2", key=b"K" * 32)) == [[]]
    assert set(owners.values()) == {"a-1"}


def test_batch_without_ids_makes_no_claims() -> None:
    claims = ListedClaims("a", {})
    assert kept(claims, record("", "")) == [[0, 1]]
    assert claims.requested == []
