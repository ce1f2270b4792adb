"""The measurements that the benchmark derives from the samples of a sustained load."""

from pathlib import Path

from bench.ingestion.sustained import Sample, SustainedRun, steady_measurements
from bench.scale import Scale


def sustained_run(*backlogs: int) -> SustainedRun:
    """A load of 1,000 events/s, sampled once a second, with these backlogs in events."""
    return SustainedRun(
        events=len(backlogs) * 1000,
        generator_share=0.1,
        samples=[
            Sample(float(second), second * 1000.0, second * 1000.0 - backlog, 400.0, 300.0)
            for second, backlog in enumerate(backlogs, start=1)
        ],
    )


def test_stored_and_acknowledged_are_what_came_between_first_and_last_sample() -> None:
    behind = sustained_run(0, 100, 200, 300, 400, 500)
    assert (behind.acknowledged_per_s, behind.stored_per_s) == (1000.0, 900.0)


def test_backlog_is_the_time_to_ingest_the_backlog_of_the_last_third() -> None:
    assert sustained_run(0, 0, 500, 500, 1500, 2500).backlog_s == 2.0


def test_growth_is_what_the_last_third_has_more_than_the_second() -> None:
    assert sustained_run(9, 9, 400, 600, 1500, 2500).growth_s == 1.5
    assert sustained_run(9, 9, 400, 600, 600, 400).growth_s == 0.0


def test_unreached_target_rate_is_reported() -> None:
    row = steady_measurements([sustained_run(0, 0, 0, 0, 0, 0)], Scale(folder=Path()))[0]
    assert (row.value, row.remark) == (
        1000.0,
        "1,000 a second got a 200; all 6,000 events are stored; the client took 10% of a core",
    )
