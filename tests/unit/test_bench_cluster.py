"""The arithmetic of `bench.cluster`: what is told of a kill, and of a billion events a day."""

import pytest

from bench.cluster_ingestion import CLICKHOUSE_US, HEADRACE_US, LOG_BYTES
from bench.cluster_page import PAGE, fill_cluster_page
from bench.cluster_questions import DISK_BYTES, QUESTION_MS
from bench.cluster_recovery import Probe, Seen
from bench.cluster_sizing import cluster_sizing_lines
from bench.figures import Figure
from bench.results import Machine, Results
from tests.e2e.service import Service

VALUES = {HEADRACE_US: 8, CLICKHOUSE_US: 4, LOG_BYTES: 250, DISK_BYTES: 100, QUESTION_MS: 60}
FIGURES = tuple(
    Figure(group="g", what=what, unit="u", runs=(value,)) for what, value in VALUES.items()
)


def test_a_billion_events_a_day_are_worked_out_step_by_step() -> None:
    results = [line.split(" | ")[-1].removesuffix(" |") for line in cluster_sizing_lines(FIGURES)]
    assert results[2:] == [
        "11,574",
        "34,722",
        "0.556 cores",
        "0.556 cores",
        "0.12 cores",
        "46%",
        "18 TB",
        "125 GB",
    ]


@pytest.mark.parametrize("missing", FIGURES, ids=lambda figure: figure.what)
def test_nothing_is_worked_out_without_a_figure(missing: Figure) -> None:
    assert cluster_sizing_lines([one for one in FIGURES if one is not missing]) == []


def test_page_takes_the_tables_of_a_run() -> None:
    machine = Machine("p", 2, 4.0, "Linux", "3.11", "ext4", 0.0)
    results = Results("2026-11-21T00:00:00Z", "abc", machine, FIGURES)
    once = fill_cluster_page(PAGE.read_text(), [results])
    assert f"| {HEADRACE_US} | 8 u |" in once
    assert "| 125 GB |" in once
    assert fill_cluster_page(once, [results]) == once


def test_probe_tells_when_a_machine_answered_again_and_what_it_said_before(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    service = Service(tmp_path_factory.mktemp("none") / "data")
    probe = Probe(service, "events", lambda _session: 200)
    probe.seen = [
        Seen(0.0, 0.1, 200),
        Seen(1.0, 1.1, 503),
        Seen(1.9, 2.1, 200),  # began before the start, and counts for neither
        Seen(2.2, 2.3, 503),
        Seen(2.4, 2.9, 200),
        Seen(3.0, 3.1, 200),
    ]
    assert probe.statuses(0.5, 2.0) == {503}
    assert probe.answered_s(2.0) == pytest.approx(0.9)
    assert probe.answered_s(3.5) is None
