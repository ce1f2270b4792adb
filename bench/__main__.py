"""`make bench`: runs all benchmarks beside their baselines, prints one table and saves the results.

Every part runs in its own process, so that no part is measured in the memory of another.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from bench.command import benchmark_parser, parse_options, save_full_run
from bench.ingestion import cpu_cost, half_capacity, sustained
from bench.operation import footprint, guarantees
from bench.queries import growth, latency
from bench.report.measurements import Measurement
from bench.report.results import (
    Results,
    collect,
    describe_machine,
    print_results,
    write_results,
)
from bench.scale import GROWTH_STEPS, HUGE_EVENTS, Scale, quick

PARTS: Mapping[str, Callable[[Scale], list[Measurement]]] = {
    "ingestion": cpu_cost.measure,
    "half-load": half_capacity.measure,
    "sustained": sustained.measure,
    "questions": latency.measure,
    "footprint": footprint.measure,
    "guarantees": guarantees.measure,
    "growth": growth.measure,
}


def _parser() -> argparse.ArgumentParser:
    parser = benchmark_parser("bench", __doc__, PARTS)
    parser.add_argument("--runs", type=int, help="turns of everything but the questions")
    parser.add_argument(
        "--huge",
        action="store_true",
        help="growth up to 100 million events: more than ten gigabytes stay in the folder",
    )
    parser.add_argument("--size", type=int, action="append", help="growth: of so many events alone")
    parser.add_argument(
        "--step", choices=GROWTH_STEPS, action="append", help="growth: this alone; may be repeated"
    )
    parser.add_argument("--measurements", type=Path, help=argparse.SUPPRESS)  # of one part
    return parser


def main() -> None:
    """Run the parts and report."""
    options = parse_options(_parser())
    scale = _scale(options)
    parts: Sequence[str] = options.only or tuple(PARTS)
    if options.measurements is not None:
        (part,) = parts
        options.measurements.write_bytes(msgspec.json.encode(PARTS[part](scale)))
        return
    machine = describe_machine(options.folder)
    measurements = [measurement for part in parts for measurement in _in_own_process(part, options)]
    _report(collect(measurements, machine), options)


def _scale(options: argparse.Namespace) -> Scale:
    scale = quick(options.folder) if options.quick else Scale(folder=options.folder)
    if options.runs:
        scale = msgspec.structs.replace(scale, runs=options.runs, growth_runs=options.runs)
    if options.huge:
        sizes = (*scale.growth_events, HUGE_EVENTS)
        scale = msgspec.structs.replace(scale, growth_events=sizes)
    if options.size:
        scale = msgspec.structs.replace(scale, growth_events=tuple(options.size))
    if options.step:
        scale = msgspec.structs.replace(scale, growth_steps=tuple(options.step))
    return scale


def _in_own_process(part: str, options: argparse.Namespace) -> list[Measurement]:
    print(f"measuring {part} ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "measurements.json"
        command = [sys.executable, "-m", "bench", "--only", part, "--measurements", str(file)]
        command += ["--folder", str(options.folder), *(["--quick"] if options.quick else [])]
        command += ["--runs", str(options.runs)] if options.runs else []
        command += ["--huge"] if options.huge else []
        command += [f"--size={size}" for size in options.size or ()]
        command += [f"--step={step}" for step in options.step or ()]
        _run(command)
        return msgspec.json.decode(file.read_bytes(), type=list[Measurement])


def _run(command: Sequence[str]) -> None:
    """Run a part until it exits. If interrupted, stop it so that it stops its child processes."""
    process = subprocess.Popen(command)
    try:
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code:
        raise SystemExit(f"a part of the benchmark failed: {' '.join(command)}")


def _report(results: Results, options: argparse.Namespace) -> None:
    print_results(results)
    if options.json:
        write_results(results, options.json)
    save_full_run(results, options, page_program="bench.report.page")


if __name__ == "__main__":
    main()
