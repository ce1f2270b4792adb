"""What the crash test prints at the end of a run."""

from chaos.report import Report, describe_missed_damage


def test_run_that_broke_nothing_says_how_often_it_cut_the_power() -> None:
    reports = [
        Report(seed=1, disk="ext4", rounds=3, power_cuts=2),
        Report(seed=1, disk="xfs", rounds=4),
    ]
    assert describe_missed_damage(reports) == (
        "Something was to be broken, and no violation was found: 7 rounds, 2 power cuts. "
        "Without a power cut, flushes that are ignored lose nothing: run more rounds."
    )
