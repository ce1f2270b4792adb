"""Run the oracle and the tests over each wrong engine, and say which of them notice it.

Usage: .venv/bin/python -m tests.mutation [--area AREA] [--only TEXT] [--suite oracle|tests]
           [--results FILE]

The engines are made in a copy of the tree. On an idle machine the oracle takes a second or two for
each of them, the tests about ten. A wrong engine that nothing notices shows a test that is missing,
or a change that changes nothing.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from compileall import compile_dir
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final, NamedTuple

from tests.mutation.engines import WRONG_ENGINES
from tests.mutation.wrong_engine import VALIDATE, WrongEngine

PROJECT: Final = Path(__file__).parents[2]
COPIED: Final = ("src", "testing", "tests", "pyproject.toml")
TIMEOUT_S: Final = 900

_SUITES: Final = ("oracle", "tests")
_SIZES: Final = (6, 40)
"""Data sets of an area, and queries for each of them: some more than the tests draw."""

_COMPILER: Final = (
    "tests/unit/query/test_compile.py",
    *("tests/unit/query/test_rejected_queries.py", "tests/unit/query/test_planned_queries.py"),
    *("tests/unit/query/test_having.py", "tests/unit/query/test_result_values.py"),
    *("tests/unit/query/test_service.py", "tests/unit/query/test_daily_rows.py"),
)
_VALIDATION: Final = ("tests/unit/query/test_day_range.py",)
"""Tests that import nothing but validation, which take as long as the others of the compiler."""
_EXAMPLES: Final = (
    *("tests/contract/store/test_aggregates.py", "tests/contract/store/test_expired_rows.py"),
    "tests/contract/store/test_websites_with_equal_ids.py",
    "tests/contract/store/test_query_results.py",
    "tests/contract/store/test_compared_results.py",
    "tests/contract/store/test_simultaneous_events.py",
    *("tests/property/queries/test_property_values.py", "tests/property/queries/test_sums.py"),
    *("tests/property/queries/test_daily_rows.py", "tests/property/queries/test_patterns.py"),
)
_GOLDEN: Final = ("tests/golden/test_golden_queries.py", "tests/golden/test_golden_refusals.py")
_TESTS: Final[Mapping[str, Sequence[str]]] = {
    "custom": _COMPILER,
    "rollup": ("tests/unit/query/test_compile.py", "tests/unit/query/test_daily_rows.py"),
    "days": (
        *("tests/unit/query/test_rejected_queries.py", "tests/unit/query/test_planned_queries.py"),
        "tests/unit/query/analyses/test_standard.py",
    ),
    "paths": (
        "tests/unit/query/analyses/test_funnel.py",
        "tests/unit/query/analyses/test_retention.py",
    ),
    "values": ("tests/unit/query/analyses/test_values.py",),
    "standard": ("tests/unit/query/analyses/test_standard.py",),
    "saved": (
        "tests/unit/query/test_saved_queries.py",
        "tests/unit/adapters/query_scheduler/test_watched_ranges.py",
    ),
}
_CHOSEN: Final = (
    "not server and not replicas and not cluster and not literals and not computed_from_the_events"
)
"""Those of the embedded store, without the ones that compare two statements of one engine."""

_OF_ORACLE: Final = ("custom", "rollup", "days", "paths", "standard")
"""The areas that the oracle knows."""

_OF_EXAMPLES: Final = ("custom", "rollup")


class Verdict(NamedTuple):
    """What noticed an engine, and by which test or query."""

    engine: WrongEngine
    noticed: Mapping[str, str]


def main() -> None:
    """Run the wrong engines that the arguments choose, and write a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--area", choices=list(_TESTS))
    parser.add_argument("--only", help="a part of the mistake")
    parser.add_argument("--suite", choices=_SUITES, help="the oracle or the tests alone")
    parser.add_argument("--results", type=Path, help="a file to write as JSON")
    given = parser.parse_args()
    chosen = [
        engine
        for engine in WRONG_ENGINES
        if given.area in (None, engine.area) and (given.only or "") in engine.mistake
    ]
    suites = _SUITES if given.suite is None else (given.suite,)
    verdicts: list[Verdict] = []
    for verdict in judge(chosen, suites):
        verdicts.append(verdict)
        noticed = ", ".join(verdict.noticed) or "NOTHING"
        _say(f"{verdict.engine.area}: {verdict.engine.mistake}: {noticed}")
        if given.results is not None:
            given.results.write_text(json.dumps([_as_object(one) for one in verdicts], indent=1))
    by_kind = Counter(suite for verdict in verdicts for suite in verdict.noticed)
    by_suite = Counter(_noticing_suites(verdict) for verdict in verdicts)
    _say(f"{len(verdicts)} engines, noticed by {dict(by_suite)}; by kind: {dict(by_kind)}")


def _noticing_suites(verdict: Verdict) -> str:
    """Return which of the suites notice an engine."""
    by_oracle, by_tests = "oracle" in verdict.noticed, bool(verdict.noticed.keys() - {"oracle"})
    return {
        (True, True): "both",
        (True, False): "the oracle alone",
        (False, True): "tests alone",
        (False, False): "nothing",
    }[by_oracle, by_tests]


def judge(engines: Sequence[WrongEngine], suites: Sequence[str]) -> Iterator[Verdict]:
    """Run the tests and the oracle over each engine; first over the right one.

    From now on this process imports the engine from a copy of the tree.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        _copy_tree(root)
        sys.path.insert(0, str(root / "src"))
        from tests.mutation.pairs import DrawnPairs  # noqa: PLC0415 - from the copy

        pairs = DrawnPairs(Path(folder) / "store", _SIZES)

        def notice(area: str, file: str) -> Mapping[str, str]:
            noticed = dict(_failing_tests(root, area, file)) if "tests" in suites else {}
            has_oracle = area in _OF_ORACLE and "oracle" in suites
            difference = pairs.first_difference(area) if has_oracle else None
            return noticed if difference is None else {**noticed, "oracle": difference}

        try:
            for area in dict.fromkeys(engine.area for engine in engines):
                failures = notice(area, VALIDATE)
                if failures:
                    raise SystemExit(f"{area}: these fail without a mistake: {failures}")
            for engine in engines:
                file = root / engine.file
                right = file.read_text()
                if right.count(engine.old) != 1:
                    raise SystemExit(f"{engine.mistake}: the text is not once in {engine.file}")
                file.write_text(right.replace(engine.old, engine.new))
                yield Verdict(engine, notice(engine.area, engine.file))
                file.write_text(right)
        finally:
            pairs.close()


def _copy_tree(root: Path) -> None:
    root.mkdir()
    for name in COPIED:
        source = PROJECT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, root / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, root / name)
    # By hash: a file that changes twice within a second may keep its time and its size.
    compile_dir(root, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)


def _failing_tests(root: Path, area: str, file: str) -> Iterator[tuple[str, str]]:
    """Yield the first failing test of each kind; examples over a store run where none is."""
    tests = (*_TESTS[area], *(_VALIDATION if file.startswith(VALIDATE) else ()))
    failures = _failures(root, (*_GOLDEN, *tests))
    if not failures and area in _OF_EXAMPLES:
        failures = _failures(root, _EXAMPLES)
    for kind, files in (("golden", _GOLDEN), ("tests", tests), ("examples", _EXAMPLES)):
        first = next((name for name in failures if name.startswith(tuple(files))), None)
        if first is not None:
            yield kind, first
    if failures and not any(name.startswith("tests/") for name in failures):
        yield "tests", failures[0]


def _failures(root: Path, files: Sequence[str]) -> Sequence[str]:
    """Return the tests that fail; only those of the embedded store run."""
    command = (
        *(sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "-rfE"),
        *(f"--timeout={TIMEOUT_S}", "-p", "no:cacheprovider", "-p", "no:randomly"),
        *("-k", _CHOSEN, *files),
    )
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode == 0:
        return ()
    found: list[str] = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found or (f"exit code {done.returncode}: {done.stdout[-300:]}",)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _as_object(verdict: Verdict) -> Mapping[str, object]:
    engine = verdict.engine
    return {"area": engine.area, "mistake": engine.mistake, "noticed": dict(verdict.noticed)}


if __name__ == "__main__":
    main()
