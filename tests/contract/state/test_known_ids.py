"""Event ids of the ledger through merges, expiry, restarts and failed commits.

A dictionary is the oracle: what was remembered and is not older than the grace period must be
known, with its expiry, and what was never remembered must not.
"""

import random
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from headrace.adapters.sqlite.digest_filter import DigestFilter
from headrace.adapters.sqlite.id_blocks import encode_blocks
from headrace.adapters.sqlite.id_entries import encode_entries, prefix_of
from headrace.adapters.sqlite.id_index import MIN_SLOTS, planes_in
from headrace.adapters.sqlite.ledger import SqliteLedger
from headrace.base.clock import MILLISECONDS_PER_DAY

START_MS = 1_700_000_000_000
WEEK_MS = 7 * MILLISECONDS_PER_DAY
STEPS = 200
NEVER = {f"never{number:011d}".encode(): 0 for number in range(20)}


class Harness:
    """A ledger that writes runs of a few ids, and the dictionary that knows what it must know."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.rng = random.Random(seed)  # noqa: S311 - test data
        self.now_ms = START_MS
        self.expected: dict[bytes, int] = {}
        self.ledger = self.opened()

    def opened(self) -> SqliteLedger:
        return SqliteLedger.open(self.path, run_ids=self.rng.choice([1, 5, 40]))

    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = self.opened()

    def some_new_digests(self) -> dict[bytes, int]:
        rng, expiry_ms = self.rng, self.now_ms + WEEK_MS
        new = {rng.randbytes(16): expiry_ms - rng.randrange(5) for _ in range(rng.randrange(30))}
        if rng.random() < 0.2:
            new[rng.randbytes(32)] = self.now_ms + MILLISECONDS_PER_DAY
        for digest in rng.sample(sorted(self.expected), min(len(self.expected), 3)):
            if self.expected[digest] < self.now_ms:
                new[digest] = expiry_ms
        return new

    @property
    def forget_before_ms(self) -> int:
        return self.now_ms - MILLISECONDS_PER_DAY

    def commit(self, new: Mapping[bytes, int]) -> None:
        batch = self.ledger.begin({}).batch
        self.ledger.commit(batch, new_digests=new, forget_before_ms=self.forget_before_ms)
        self.expected.update(new)

    def must_be_known(self) -> dict[bytes, int]:
        return {
            digest: expiry_ms
            for digest, expiry_ms in self.expected.items()
            if expiry_ms >= self.forget_before_ms
        }

    def stored(self) -> tuple[int, int]:
        """Return the numbers of runs and of entries in the file."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as connection:
            runs = connection.execute("SELECT count(*) FROM id_runs").fetchone()
            sizes = connection.execute("SELECT sum(length(entries)) / 24 FROM id_blocks").fetchone()
        return int(runs[0]), int(sizes[0])


@pytest.mark.parametrize("seed", range(4))
def test_ledger_knows_what_a_dictionary_knows(tmp_path: Path, seed: int) -> None:
    made = Harness(tmp_path / "ledger.sqlite", seed)
    rng = made.rng
    for _ in range(STEPS):
        made.now_ms += rng.choice([0, 1000, 3_600_000, 40_000_000])
        if rng.random() < 0.1:
            made.reopen()
        requested = rng.sample(sorted(made.expected), min(len(made.expected), 30))
        known = made.ledger.known_digests([*requested, *NEVER])
        must = made.must_be_known()
        assert {digest: known.get(digest) for digest in requested if digest in must} == {
            digest: must[digest] for digest in requested if digest in must
        }
        assert all(made.expected.get(digest) == known[digest] for digest in known)
        made.commit(made.some_new_digests())
    every = dict(made.ledger.all_known_digests())
    assert {digest: every.get(digest) for digest in made.must_be_known()} == made.must_be_known()
    made.ledger.close()
    runs, entries = made.stored()
    assert runs < 40
    assert entries < len(made.expected)  # expired ones are deleted


def digests(count: int) -> list[bytes]:
    rng = random.Random(count)  # noqa: S311 - test data
    return [rng.randbytes(16) for _ in range(count)]


@pytest.mark.parametrize("run_ids", [1, 1_000], ids=["written as a run", "not in a run yet"])
def test_digests_of_a_commit_that_failed_are_not_known(tmp_path: Path, run_ids: int) -> None:
    first, second = digests(2)
    ledger = SqliteLedger.open(tmp_path / "ledger.sqlite", run_ids=run_ids)
    ledger.commit(ledger.begin({}).batch, new_digests={first: 5}, forget_before_ms=0)
    pending = ledger.begin({})
    with pytest.raises(OverflowError):  # no expiry of SQLite is that late
        ledger.commit(pending.batch, new_digests={second: 6}, forget_before_ms=1 << 70)
    assert ledger.known_digests([first, second]) == {first: 5}
    ledger.commit(pending.batch, new_digests={second: 7}, forget_before_ms=0)
    assert ledger.known_digests([first, second]) == {first: 5, second: 7}
    ledger.close()


def test_event_ids_of_version_5_are_moved_and_keys_stay(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    SqliteLedger.open(path).close()
    ids = dict.fromkeys(digests(150_000), START_MS)
    keys = {b"k" * 32: START_MS + 1}
    with closing(sqlite3.connect(path)) as connection:
        for table in ("recent_ids", "id_runs", "id_blocks", "requeued"):
            connection.execute(f"DROP TABLE {table}")
        rows = sorted({**ids, **keys}.items())
        connection.executemany("INSERT INTO seen VALUES (?, ?)", rows)
        connection.execute("PRAGMA user_version = 5")
        connection.commit()
    for _ in range(2):
        with closing(SqliteLedger.open(path)) as ledger:
            assert dict(ledger.all_known_digests()) == {**ids, **keys}
            requested = [*list(ids)[::1000], *keys, *NEVER]
            assert ledger.known_digests(requested) == {
                digest: expiry_ms
                for digest, expiry_ms in {**ids, **keys}.items()
                if digest in requested
            }
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM seen").fetchone() == (1,)


def test_blocks_have_each_entry_once_by_its_prefix_and_in_order() -> None:
    expiries = {digest: START_MS + number for number, digest in enumerate(digests(20_000))}
    expected: defaultdict[int, bytes] = defaultdict(bytes)
    for digest, entry in zip(expiries, encode_entries(expiries), strict=True):
        expected[prefix_of(digest)] += entry
    blocks = encode_blocks(expiries)
    assert blocks == expected
    assert list(blocks) == sorted(blocks)
    assert encode_blocks({digests(1)[0]: 7}) == {
        prefix_of(digests(1)[0]): digests(1)[0] + b"\7" + bytes(7)
    }


def test_ledger_without_a_run_needs_no_numpy(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from headrace.adapters.sqlite.ledger import SqliteLedger
ledger = SqliteLedger.open(Path({str(tmp_path / "ledger.sqlite")!r}), run_ids=3)
loaded = []
for number in range(3):
    batch = ledger.begin({{}}).batch
    ledger.commit(batch, new_digests={{bytes([number]) * 16: 5}}, forget_before_ms=0)
    loaded.append("numpy" in sys.modules)
ledger.close()
print(loaded)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (ran.stdout, ran.stderr) == ("[False, False, True]\n", "")


def test_filter_finds_every_digest_in_its_plane_and_few_others() -> None:
    digest_filter = DigestFilter(2 * MIN_SLOTS)
    added, others = digests(1_000), digests(10_000)
    digest_filter.add(b"".join(digest + b"\xff" * 8 for digest in added), 24, 3)
    digest_filter.add(b"".join(added[:10]), 16, 7)
    found = dict(digest_filter.candidates(added, 16))
    assert {digest: planes_in(found[digest]) for digest in added} == {
        **{digest: [3] for digest in added},
        **{digest: [3, 7] for digest in added[:10]},
    }
    assert len(digest_filter.candidates(others, 16)) < 10
    assert digest_filter.candidates([], 16) == []
    digest_filter.clear(3)
    assert digest_filter.candidates(added, 16) == [(digest, 1 << 7) for digest in added[:10]]


def test_filter_finds_what_is_added_in_many_pieces_and_planes() -> None:
    digest_filter = DigestFilter(MIN_SLOTS)
    added = digests(60_000)  # more than are added at once, and many that share a slot
    for plane in range(8):
        digest_filter.add(b"".join(added[plane * 7_500 :]), 16, plane)
    found = dict(digest_filter.candidates(added, 16))
    for number, digest in enumerate(added):
        assert found[digest] & (2 << number // 7_500) - 1 == (2 << number // 7_500) - 1
