"""Random draws with plain probabilities, because Hypothesis favors small, repeated values.

Most examples that Hypothesis draws are small or reuse parts of others, so few of its queries have a
filter or a group of several rows. Here every draw has exactly the stated probability. Hypothesis
draws the seed, so its seed still determines the whole example.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

_SEED_BYTES: Final = 8


class SeededRandom:
    """A source of values that a seed determines."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - not a secret

    def choice(self, values: Sequence[T]) -> T:
        """Return one of the given values."""
        return self._random.choice(values)

    def sample(self, values: Sequence[T], least: int, most: int) -> list[T]:
        """Return `least` to `most` distinct values, or all of them."""
        wanted = list(dict.fromkeys(values))
        return self._random.sample(wanted, min(self.integer(least, most), len(wanted)))

    def integer(self, least: int, most: int) -> int:
        """Return an integer between both bounds, inclusive."""
        return self._random.randint(least, most)

    def has_probability(self, share: float) -> bool:
        """Return true with the probability `share`, from 0 to 1."""
        return self._random.random() < share

    def times(self, least: int, most: int, draw: Callable[["SeededRandom"], T]) -> list[T]:
        """Draw `least` to `most` times and return the values."""
        return [draw(self) for _ in range(self.integer(least, most))]


def random_strategy(draw: Callable[[SeededRandom], T]) -> st.SearchStrategy[T]:
    """Return a Hypothesis strategy for the values of a function.

    The seed is drawn as bytes: of a large range of integers Hypothesis draws small ones, most below
    2**16, so runs would repeat each other.
    """
    seeds = st.binary(min_size=_SEED_BYTES, max_size=_SEED_BYTES)
    return seeds.map(lambda seed: draw(SeededRandom(int.from_bytes(seed))))
