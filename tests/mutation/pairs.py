"""Drawn queries over tables in one chDB, with what the oracle says; each engine runs all of them.

Importing the engine again takes a tenth of a second, a process of its own ten seconds.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headrace.adapters.store.chdb.connection import ChdbInstance
from headrace.base.logs import get_logger
from testing.chdb import FreshStore
from tests.e2e.query.queries import alike
from tests.oracle import Stored
from tests.property.generators.paths import funnels, path_data, retentions
from tests.property.generators.query_cases import Body, arbitrary_bodies
from tests.property.generators.query_data import data_sets
from tests.property.generators.rollup_cases import dashboard_bodies
from tests.property.generators.standard import standard_queries

CUSTOM: Final = "tests.property.queries.test_results_in_process"
PATHS: Final = "tests.property.queries.test_paths_in_process"
STANDARD: Final = "tests.property.queries.test_standard_in_process"

_ENGINE: Final = ("headrace.query", "headrace.http", "testing.queries", CUSTOM, PATHS, STANDARD)
"""The modules of an engine, and of what calls it."""

_T = TypeVar("_T")


class Pair(NamedTuple):
    """A query, how the engine's answer is made, and the oracle's answer."""

    body: Body
    run: Callable[[], Any]
    expected: Any


def draw(strategy: st.SearchStrategy[_T], count: int) -> list[_T]:
    """Return values of a strategy, without those that Hypothesis tries first and last."""
    drawn: list[_T] = []

    @settings(
        max_examples=count,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )
    @given(value=strategy)
    def collect(value: _T) -> None:
        drawn.append(value)

    collect()
    return drawn


class DrawnPairs:
    """The pairs of each area. The engine that is imported when they are drawn must be right.

    `sizes` are how many data sets are drawn for each area, and how many queries for each of them.
    """

    def __init__(self, directory: Path, sizes: tuple[int, int]) -> None:
        self._chdb = ChdbInstance(directory, log=get_logger())
        self._chdb.open()
        self._data_sets, self._queries = sizes
        self._pairs: dict[str, list[Pair]] = {}

    def first_difference(self, area: str) -> str | None:
        """Import the engine as it is in the files now; return what differs first, if anything."""
        for name in [name for name in sys.modules if name.startswith(_ENGINE)]:
            del sys.modules[name]
        for pair in self._of_area(area):
            try:
                got = pair.run()
            except Exception as error:  # noqa: BLE001 - a wrong engine may raise anything
                got = repr(error)
            if not alike(got, pair.expected):
                return str(pair.body)
        return None

    def close(self) -> None:
        """Close chDB."""
        self._chdb.close()

    def _of_area(self, area: str) -> Sequence[Pair]:
        if area not in self._pairs:
            drawing: Mapping[str, Callable[[], Iterator[Pair]]] = {
                "paths": self._draw_paths,
                "standard": self._draw_standard,
                "rollup": partial(self._draw_custom, dashboard_bodies),
            }
            self._pairs[area] = list(drawing.get(area, self._draw_custom)())
        return self._pairs[area]

    def _filled(self, stored: Stored) -> FreshStore:
        store = FreshStore(self._chdb)
        import_module(CUSTOM).insert(store, stored)
        return store

    def _draw_custom(self, bodies: st.SearchStrategy[Body] = arbitrary_bodies) -> Iterator[Pair]:
        custom = import_module(CUSTOM)
        for data in draw(data_sets, self._data_sets):
            stored = custom.stored_of(data)
            store = self._filled(stored)
            queries = st.tuples(bodies, custom.cutoffs_within(stored))
            for body, cutoffs in draw(queries, self._queries):
                left = custom.remaining(stored, cutoffs)
                yield Pair(
                    body,
                    partial(_call, CUSTOM, "got_of", store, body, cutoffs),
                    custom.expected_of(body, left),
                )

    def _draw_paths(self) -> Iterator[Pair]:
        paths = import_module(PATHS)
        for stored in draw(path_data, self._data_sets):
            store = self._filled(stored)
            for body in draw(funnels, self._queries // 2):
                yield Pair(
                    body,
                    partial(_call, PATHS, "funnel_rows", store, body),
                    paths.evaluate_funnel(body, stored),
                )
            for body in draw(retentions, self._queries // 2):
                yield Pair(
                    body,
                    partial(_call, PATHS, "retention_rows", store, body),
                    paths.evaluate_retention(body, stored, paths.NOW_MS),
                )

    def _draw_standard(self) -> Iterator[Pair]:
        standard = import_module(STANDARD)
        for data in draw(data_sets, self._data_sets):
            stored = standard.stored_of(data)
            store = self._filled(stored)
            queries = st.tuples(standard_queries, standard.times_near(stored))
            for body, now_ms in draw(queries, self._queries):
                yield Pair(
                    body,
                    partial(_call, STANDARD, "got_of", store, body, now_ms),
                    standard.by_oracle(stored, body, now_ms),
                )


def _call(module: str, name: str, *arguments: object) -> object:
    """Call a function of a module as it is imported at this moment."""
    return getattr(import_module(module), name)(*arguments)
