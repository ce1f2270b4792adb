"""The arithmetic of `bench.cluster`: recovery times, and sizing for a billion events a day."""

import pytest

from bench.cluster.ingestion import CLICKHOUSE_US, HEADRACE_US, LOG_BYTES
from bench.cluster.page import PAGE, fill_cluster_page
from bench.cluster.queries import DISK_BYTES, QUERY_CPU_MS
from bench.cluster.recovery import Probe, ProbeResult
from bench.cluster.sizing import cluster_sizing_lines
from bench.report.measurements import Measurement
from bench.report.results import Machine, Results
from testing.service import Service

VALUES = {HEADRACE_US: 8, CLICKHOUSE_US: 4, LOG_BYTES: 250, DISK_BYTES: 100, QUERY_CPU_MS: 60}
MEASUREMENTS = tuple(
    Measurement(group="g", title=title, unit="u", runs=(value,)) for title, value in VALUES.items()
)


def test_a_billion_events_a_day_are_derived_step_by_step() -> None:
    results = [
        line.split(" | ")[-1].removesuffix(" |") for line in cluster_sizing_lines(MEASUREMENTS)
    ]
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


@pytest.mark.parametrize("missing", MEASUREMENTS, ids=lambda measurement: measurement.title)
def test_nothing_is_derived_without_a_measurement(missing: Measurement) -> None:
    assert cluster_sizing_lines([one for one in MEASUREMENTS if one is not missing]) == []


def test_page_takes_the_tables_of_a_run() -> None:
    machine = Machine("p", 2, 4.0, "Linux", "3.11", "ext4", 0.0)
    results = Results("2026-11-21T00:00:00Z", "abc", machine, MEASUREMENTS)
    once = fill_cluster_page(PAGE.read_text(), [results])
    assert f"| {HEADRACE_US} | 8 u |" in once
    assert "| 125 GB |" in once
    assert fill_cluster_page(once, [results]) == once


def test_probe_reports_recovery_time_and_previous_errors(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    service = Service(tmp_path_factory.mktemp("none") / "data")
    probe = Probe(service, "events", lambda _session: 200)
    probe.results = [
        ProbeResult(0.0, 0.1, 200),
        ProbeResult(1.0, 1.1, 503),
        ProbeResult(1.9, 2.1, 200),  # sent before the start, so neither counts it
        ProbeResult(2.2, 2.3, 503),
        ProbeResult(2.4, 2.9, 200),
        ProbeResult(3.0, 3.1, 200),
    ]
    assert probe.statuses(0.5, 2.0) == {503}
    assert probe.first_success_s(2.0) == pytest.approx(0.9)
    assert probe.first_success_s(3.5) is None
