"""The digests of a batch: whatever is looked up, the answer is that of a dictionary."""

import random

import pytest

from headrace.formats.digest_set import MIN_MAPPED_DIGESTS, DigestSet

RNG = random.Random(7)  # noqa: S311 - test data
EVENT_IDS = {RNG.randbytes(16): number for number in range(3 * MIN_MAPPED_DIGESTS)}
OTHERS = [RNG.randbytes(16) for _ in range(50_000)]
KEY, OTHER_KEY = RNG.randbytes(32), RNG.randbytes(32)
FEW = dict(list(EVENT_IDS.items())[: MIN_MAPPED_DIGESTS - 1])


@pytest.mark.parametrize(
    "expiries",
    [EVENT_IDS, FEW, {**EVENT_IDS, KEY: 5}, {KEY: 5}, {}],
    ids=["event ids", "a few event ids", "event ids and a key", "a key", "nothing"],
)
@pytest.mark.parametrize(
    "requested",
    [
        [*OTHERS, *EVENT_IDS],
        OTHERS,
        [KEY, OTHER_KEY, *EVENT_IDS],
        [KEY],
        [next(iter(EVENT_IDS))],
        [],
    ],
    ids=["event ids and others", "others", "keys and event ids", "a key", "one", "nothing"],
)
def test_set_knows_what_a_dictionary_knows(
    expiries: dict[bytes, int], requested: list[bytes]
) -> None:
    expected = {digest: expiries[digest] for digest in requested if digest in expiries}
    assert DigestSet(expiries).known_among(requested) == expected
