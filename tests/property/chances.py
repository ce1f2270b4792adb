"""Drawing by chance alone, where Hypothesis would rather draw little and repeat itself.

Of the examples that Hypothesis draws most are small or made of others, so few of its queries have a
filter or a group of several rows. What is drawn here is as likely as it says. Hypothesis draws the
seed, so its seed still decides on all of it.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class SeededRandom:
    """A source of values that a seed decides on."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - not a secret

    def choice(self, values: Sequence[T]) -> T:
        """Return one of some values."""
        return self._random.choice(values)

    def sample(self, values: Sequence[T], least: int, most: int) -> list[T]:
        """Return so many different ones, or all of them."""
        wanted = list(dict.fromkeys(values))
        return self._random.sample(wanted, min(self.integer(least, most), len(wanted)))

    def integer(self, least: int, most: int) -> int:
        """Return a whole number, both ends included."""
        return self._random.randint(least, most)

    def has_probability(self, share: float) -> bool:
        """Return true in so many of all cases, from 0 to 1."""
        return self._random.random() < share

    def times(self, least: int, most: int, draw: Callable[["SeededRandom"], T]) -> list[T]:
        """Draw so many times."""
        return [draw(self) for _ in range(self.integer(least, most))]


def random_strategy(draw: Callable[[SeededRandom], T]) -> st.SearchStrategy[T]:
    """Return a strategy for what a function draws."""
    seeds: st.SearchStrategy[Any] = st.integers(0, 2**64 - 1)
    return seeds.map(lambda seed: draw(SeededRandom(seed)))
