"""The crash test of the tracker finds nothing, and finds a tracker or a network that is broken."""

import os
from pathlib import Path

import pytest

from chaos.browser.run import run
from testing.browsers.kinds import Kind

ROUNDS = int(os.environ.get("HEADRACE_CLIENT_ROUNDS", "20"))
SEED = 3  # its first rounds have a reload, lost replies and full storage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_events_whose_call_returned_are_stored_once_whatever_fails(
    tmp_path: Path, browser: Kind
) -> None:
    report = run(tmp_path, rounds=ROUNDS, seed=SEED, browser=browser)

    assert sum(report.faults.values()) == ROUNDS
    assert report.returned > ROUNDS
    assert (report.lost, report.doubled) == ([], [])


def test_tracker_that_forgets_events_is_found(tmp_path: Path, browser: Kind) -> None:
    report = run(tmp_path, rounds=10, seed=SEED, keeps_events=False, only="reload", browser=browser)

    assert report.lost != []


def test_network_that_doubles_events_is_found(tmp_path: Path, browser: Kind) -> None:
    report = run(tmp_path, rounds=3, seed=SEED, strips_ids=True, only="reply lost", browser=browser)

    assert report.doubled != []
