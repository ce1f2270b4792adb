"""The report of the benchmark's measurements, and their tables in the performance page."""

import pytest
from msgspec.structs import replace

from bench.report.growth import growth_lines
from bench.report.measurements import TIMES, Measurement, Threshold
from bench.report.page import PAGE, fill_page
from bench.report.results import Machine, Results
from bench.report.sizing import sizing_lines


def measurement(
    *runs: float,
    baseline_runs: tuple[float, ...] = (),
    threshold: Threshold | None = None,
    title: str = "x",
) -> Measurement:
    return Measurement(
        group="a group",
        title=title,
        unit="ms",
        runs=runs,
        baseline="Y3" if baseline_runs else "",
        baseline_runs=baseline_runs,
        threshold=threshold,
    )


def results(*measurements: Measurement) -> Results:
    machine = Machine("CPU", 2, 8.0, "Linux 6", "3.11", "ext4", 0.5)
    return Results("2026-11-21T10:00:00Z", "abc1234", machine, measurements)


@pytest.mark.parametrize(
    ("threshold", "runs", "baseline_runs", "verdict"),
    [
        pytest.param(None, (1.0,), (), "", id="no target"),
        pytest.param(Threshold(fixed=6), (5.0, 6.0, 9.0), (), "yes", id="median at the bound"),
        pytest.param(Threshold(fixed=6), (5.0, 6.1, 9.0), (), "**no**", id="median over the bound"),
        pytest.param(Threshold(fixed=6, at_least=True), (5.0,), (), "**no**", id="too few"),
        pytest.param(Threshold(fixed=6, at_least=True), (7.0,), (), "yes", id="enough"),
        pytest.param(Threshold(factor=1.15, fixed=3), (26.0,), (20.0,), "yes", id="with yardstick"),
        pytest.param(
            Threshold(factor=1.15, fixed=3), (26.1,), (20.0,), "**no**", id="over yardstick"
        ),
        pytest.param(
            Threshold(factor=2), (10.0, 30.0, 90.0), (20.0, 5.0, 15.0), "yes", id="whichever pairs"
        ),
        pytest.param(
            Threshold(factor=2),
            (10.0, 30.1, 90.0),
            (20.0, 5.0, 15.0),
            "**no**",
            id="medians over it",
        ),
    ],
)
def test_target_is_met_by_the_medians_of_both(
    threshold: Threshold | None,
    runs: tuple[float, ...],
    baseline_runs: tuple[float, ...],
    verdict: str,
) -> None:
    assert measurement(*runs, baseline_runs=baseline_runs, threshold=threshold).verdict == verdict


def test_measurement_is_a_row_with_ratio_and_target() -> None:
    row = measurement(
        20.0, 1234.5, 22.0, baseline_runs=(10.0, 11.0, 10.0), threshold=Threshold(1.15, 3.0)
    )
    assert row.cells() == (
        "x",
        "22 ms",
        "Y3 10 ms",
        "2.20",
        f"≤ 1.15 {TIMES} Y3 + 3 ms",
        "**no**",
        "3",
        "",
    )


def test_ratio_is_that_of_the_medians_which_the_row_shows() -> None:
    row = measurement(12.6, 13.7, 12.8, 11.6, 17.6, baseline_runs=(3.3, 4.7, 2.9, 5.4, 5.1))
    assert row.cells()[1:4] == ("12.8 ms", "Y3 4.7 ms", "2.72")


def test_failed_measurement_states_the_reason() -> None:
    row = Measurement(group="a group", title="x", unit="ms", baseline="Y4", skip_reason="no bun")
    assert row.cells() == ("x", "not measured", "Y4", "", "", "", "0", "no bun")


def sized(events: int, *runs: float, title: str = "x") -> Measurement:
    return Measurement(
        group="a group",
        title=title,
        unit="ms",
        runs=runs,
        threshold=Threshold(fixed=100, of_p95=True),
        events=events,
    )


def test_target_of_p95_is_met_by_all_runs_but_the_slowest_of_twenty() -> None:
    fast, slow = (50.0,) * 19, 500.0
    assert [sized(1, *fast, slow).verdict, sized(1, *fast[1:], slow, slow).verdict] == [
        "yes",
        "**no**",
    ]


def test_things_measured_over_several_sizes_are_rows_with_a_column_for_each_size() -> None:
    baseline = replace(sized(10_000_000, 90.0, 120.0), baseline="Y3", baseline_runs=(80.0, 90.0))
    absent = replace(sized(10_000_000, title="cold"), skip_reason="not root")
    measurements = [sized(1_000_000, 5.0, 7.0), baseline, absent, measurement(1.0)]
    assert list(growth_lines(measurements)) == [
        "",
        "**A group**",
        "",
        "| What | 1 M events | 10 M events | Target at 10 M events | Met |",
        "|---|---|---|---|---|",
        "| x | 6 ms, p95 7 | 105 ms, p95 120 (Y3 85 ms) | p95 ≤ 100 ms | **no** |",
        "| cold |  | not measured: not root | p95 ≤ 100 ms |  |",
    ]


def test_page_gets_tables_of_sizes_beside_the_others_of_an_earlier_run() -> None:
    page = "<!-- figures -->old<!-- end of figures -->\n<!-- growth --><!-- end of growth -->\n"
    assert fill_page(page, [results(sized(1_000_000, 5.0))]) == (
        "<!-- figures -->old<!-- end of figures -->\n<!-- growth -->\n\n"
        "2026-11-21, commit `abc1234`. CPU, 2 cores, 8 GiB, Linux 6, ext4, Python 3.11; "
        "load average at the\nstart 0.5.\n\n**A group**\n\n"
        "| What | 1 M events | Target at 1 M events | Met |\n|---|---|---|---|\n"
        "| x | 5 ms, p95 5 | p95 ≤ 100 ms | yes |\n\n<!-- end of growth -->\n"
    )


def test_page_joins_sizes_that_were_measured_in_runs_of_their_own() -> None:
    page = "<!-- growth --><!-- end of growth -->\n"
    runs = [results(sized(1_000_000, 5.0)), results(sized(10_000_000, 9.0))]
    assert fill_page(page, runs).splitlines()[-5:-2] == [
        "| What | 1 M events | 10 M events | Target at 10 M events | Met |",
        "|---|---|---|---|---|",
        "| x | 5 ms, p95 5 | 9 ms, p95 9 | p95 ≤ 100 ms | yes |",
    ]


def test_page_keeps_sizes_of_two_commits_apart() -> None:
    page = "<!-- growth --><!-- end of growth -->\n"
    runs = [
        results(sized(1_000_000, 5.0)),
        replace(results(sized(10_000_000, 9.0)), commit="def5678"),
    ]
    lines = fill_page(page, runs).splitlines()
    assert [line for line in lines if line.startswith("| x")] == [
        "| x | 5 ms, p95 5 | p95 ≤ 100 ms | yes |",
        "| x | 9 ms, p95 9 | p95 ≤ 100 ms | yes |",
    ]


def test_page_gets_the_tables_of_a_run_between_its_markers() -> None:
    page = (
        "# P\n<!-- figures -->old<!-- end of figures -->\n<!-- sizing --><!-- end of sizing -->\n"
    )
    assert fill_page(page, [results(measurement(1.0))]) == (
        "# P\n<!-- figures -->\n\n"
        "2026-11-21, commit `abc1234`. CPU, 2 cores, 8 GiB, Linux 6, ext4, Python 3.11; "
        "load average at the\nstart 0.5.\n\n**A group**\n\n"
        "| What | Headrace | Yardstick | Ratio | Target | Met | Runs | Remark |\n"
        "|---|---|---|---|---|---|---|---|\n"
        "| x | 1 ms |  |  |  |  | 1 |  |\n\n<!-- end of figures -->\n"
        "<!-- sizing -->\n\n\n\n<!-- end of sizing -->\n"
    )


def test_groups_of_a_later_run_replace_those_of_an_earlier_one() -> None:
    other = replace(measurement(3.0), group="another group")
    earlier, later = results(measurement(1.0), other), results(measurement(2.0))
    page = fill_page(PAGE.read_text(), [earlier, later])
    assert [line for line in page.splitlines() if line.startswith("| x |")] == [
        "| x | 3 ms |  |  |  |  | 1 |  |",
        "| x | 2 ms |  |  |  |  | 1 |  |",
    ]


def test_performance_page_has_its_markers() -> None:
    assert "| x | 1 ms |" in fill_page(PAGE.read_text(), [results(measurement(1.0))])


def test_sizing_comes_from_cpu_and_disk_of_one_event() -> None:
    measurements = [
        measurement(
            10.0,
            title="batch of 100 with ids: CPU of all processes for one event, to the stored row",
        ),
        measurement(50.0, title="single event: CPU of all processes, to the stored row"),
        measurement(80.0, title="disk for one event and its share of vitals and errors"),
    ]
    assert sizing_lines(measurements)[3] == (
        "| 10,000,000 | 116 | 347 | 0.00347 cores | 0.0174 cores | 24 GB |"
    )
