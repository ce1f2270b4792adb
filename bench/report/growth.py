"""Tables of what each size of a data set needs: a row for each thing, a column for each size."""

from collections.abc import Iterator, Sequence

from bench.report.measurements import Measurement, format_events, format_with_unit


def growth_lines(measurements: Sequence[Measurement]) -> Iterator[str]:
    """Return a table for each group of measurements over several sizes."""
    groups = dict.fromkeys(measurement.group for measurement in measurements if measurement.events)
    for group in groups:
        yield from _table(group, [one for one in measurements if one.events and one.group == group])


def _table(group: str, members: Sequence[Measurement]) -> Iterator[str]:
    sizes = sorted({measurement.events for measurement in members})
    columns = ["What", *map(format_events, sizes), f"Target at {format_events(sizes[-1])}", "Met"]
    yield from ("", f"**{group[:1].upper()}{group[1:]}**", "")
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    titles = dict.fromkeys(measurement.title for measurement in members)
    for title in titles:
        yield _row(title, [one for one in members if one.title == title], sizes)


def _row(title: str, members: Sequence[Measurement], sizes: Sequence[int]) -> str:
    by_size = {measurement.events: measurement for measurement in members}
    largest = by_size.get(sizes[-1])
    target = largest.threshold.describe(largest) if largest and largest.threshold else ""
    cells = [
        title,
        *(_cell(by_size[size]) if size in by_size else "" for size in sizes),
        target,
        largest.verdict if largest else "",
    ]
    return f"| {' | '.join(cells)} |"


def _cell(measurement: Measurement) -> str:
    """Return the value, and that of the baseline."""
    if measurement.skip_reason:
        return f"not measured: {measurement.skip_reason}"
    if not measurement.baseline_runs:
        return measurement.value_cell()
    baseline = format_with_unit(measurement.baseline_value, measurement.unit)
    return f"{measurement.value_cell()} ({measurement.baseline} {baseline})"
